package doctor

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// CheckKubernetes is the name of this check.
const CheckKubernetes Check = "Kubernetes"

var (
	kubernetesCheck = checkOf[*Facts]{
		name:  CheckKubernetes,
		judge: infallible(func(f *Facts) []Finding { return judgeKubernetes(f.Host.Version, "") }),
	}
	memberKubernetesCheck = checkOf[*Member]{name: CheckKubernetes, judge: infallible(func(m *Member) []Finding {
		if m.Away != "" {
			return nil
		}
		return judgeKubernetes(m.Version, m.shownName())
	})}
)

// Kubernetes versions.
const (
	oldest = "1.34"
	// nominates is the first version whose scheduler nominates a node before it binds volumes.
	nominates = "1.35"
)

// judgeKubernetes checks a cluster's Kubernetes version.
func judgeKubernetes(is, cluster string) []Finding {
	v, err := version.ParseGeneric(is)
	where := cmp.Or(quotedMember(cluster), "the host")
	switch {
	case is == "":
		return nil
	case err != nil:
		return []Finding{problem(Warning, fmt.Sprintf("%s reports version %q, which is not a Kubernetes version", where, is), "Check which server responds at the cluster's address.")}
	case v.LessThan(version.MustParseGeneric(oldest)):
		return []Finding{problem(Error, fmt.Sprintf("%s runs Kubernetes %s, which is too old: Xylem needs %s or newer", where, is, oldest), "Upgrade the cluster.")}
	case cluster == "" && v.LessThan(version.MustParseGeneric(nominates)):
		return []Finding{problem(Warning, fmt.Sprintf("the host runs Kubernetes %s, whose scheduler doesn't nominate a node before it binds volumes, so the manager itself checks whether Pods fit", is),
			"Upgrade the host to "+nominates+", or avoid Pods that mix promises with mirrored claims.")}
	}
	return []Finding{passed("%s runs Kubernetes %s", where, is)}
}

func quotedMember(cluster string) string {
	if cluster == "" {
		return ""
	}
	return fmt.Sprintf("member %q", cluster)
}
