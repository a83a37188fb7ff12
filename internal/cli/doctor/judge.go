package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Of evaluates the facts with all checks.
func judgeFacts(f *Facts) (*Checkup, error) {
	h := &f.Host
	policies, err := judgeHostPolicies(h)
	if err != nil {
		return nil, err
	}
	definition, err := judgeDefinition(h)
	if err != nil {
		return nil, err
	}
	var all []Finding
	for _, some := range [][]Finding{
		judgeKubernetes(h.Version, ""), judgePlugin(f.Version, h), definition, judgeManager(h), judgeRights(h.Rights, h.Account.Name, ""), policies, judgeSteering(h), judgeReservedKeys(h), judgeDrivers(h),
		judgeControlPlane(h), judgeHostClock(h), judgeRegistrations(h), judgeTokens(f), judgeNodeAPI(h), judgeDaemonSets(h), judgeSnapshots(h), judgeHostLeftovers(h),
	} {
		all = append(all, some...)
	}
	for i := range f.Members {
		some, err := judgeMember(&f.Members[i], h)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return NewCheckup(all, f.Missing), nil
}

// Kubernetes versions.
const (
	oldest = "1.34"
	// nominates is the first version whose scheduler nominates a node before it binds volumes.
	nominates = "1.35"
)

// kubernetes checks a cluster's Kubernetes version.
func judgeKubernetes(is, cluster string) []Finding {
	v, err := version.ParseGeneric(is)
	where := cmp.Or(quotedMember(cluster), "the host")
	switch {
	case is == "":
		return nil
	case err != nil:
		return []Finding{Problem(Warning, CheckKubernetes, cluster, fmt.Sprintf("%s reports version %q, which is not a Kubernetes version", where, is), "Check which server responds at the cluster's address.")}
	case v.LessThan(version.MustParseGeneric(oldest)):
		return []Finding{Problem(Error, CheckKubernetes, cluster, fmt.Sprintf("%s runs Kubernetes %s, which is too old: Xylem needs %s or newer", where, is, oldest), "Upgrade the cluster.")}
	case cluster == "" && v.LessThan(version.MustParseGeneric(nominates)):
		return []Finding{Problem(Warning, CheckKubernetes, cluster, fmt.Sprintf("the host runs Kubernetes %s, whose scheduler doesn't nominate a node before it binds volumes, so the manager itself checks whether Pods fit", is),
			"Upgrade the host to "+nominates+", or avoid Pods that mix promises with mirrored claims.")}
	}
	return []Finding{Passed(CheckKubernetes, cluster, "%s runs Kubernetes %s", where, is)}
}

func quotedMember(cluster string) string {
	if cluster == "" {
		return ""
	}
	return fmt.Sprintf("member %q", cluster)
}

// plugin compares the plugin's version with the manager's.
func judgePlugin(own string, h *Host) []Finding {
	if h.Deployment.Item == nil {
		return nil
	}
	managers := managerVersion(h)
	a, errA := version.ParseSemantic(own)
	b, errB := version.ParseSemantic(managers)
	if errA != nil || errB != nil {
		return []Finding{Passed(CheckPlugin, "", "the plugin's version (%s) and the manager's (%s) cannot be compared. See the findings about the CRD, policies and permissions instead", cmp.Or(own, "unknown"), cmp.Or(managers, "unknown"))}
	}
	switch {
	case a.LessThan(b):
		return []Finding{Problem(Warning, CheckPlugin, "", fmt.Sprintf("the plugin (%s) is older than the manager (%s), so the plugin may report changes in the manager's version as problems", own, managers), "Use the plugin version that matches the manager.")}
	case b.LessThan(a):
		return []Finding{Problem(Warning, CheckPlugin, "", fmt.Sprintf("the plugin (%s) is newer than the manager (%s), so the manager may lack what the plugin's version added", own, managers), "Upgrade the manager, or use the plugin version that matches the manager.")}
	}
	return []Finding{Passed(CheckPlugin, "", "the plugin and the manager are both %s", own)}
}

// managerVersion returns the version in the Deployment's label, or in its image tag.
func managerVersion(h *Host) string {
	d := h.Deployment.Item
	if label := d.Labels["app.kubernetes.io/version"]; label != "" {
		return label
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		name, _, _ := strings.Cut(c.Image, "@")
		if at := strings.LastIndex(name, ":"); c.Name == "manager" && at > strings.LastIndex(name, "/") {
			return name[at+1:]
		}
	}
	return ""
}
