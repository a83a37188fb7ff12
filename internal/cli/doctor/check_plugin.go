package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// CheckPlugin is the name of this check.
const CheckPlugin Check = "Plugin"

var pluginCheck = checkOf[*Facts]{name: CheckPlugin, judge: infallible(judgePlugin)}

// judgePlugin compares the plugin's version with the manager's.
func judgePlugin(f *Facts) []Finding {
	own, h := f.Version, &f.Host
	if h.Deployment.Item == nil {
		return nil
	}
	managers := managerVersion(h)
	a, errA := version.ParseSemantic(own)
	b, errB := version.ParseSemantic(managers)
	if errA != nil || errB != nil {
		return []Finding{passed("the plugin's version (%s) and the manager's (%s) cannot be compared. See the findings about the CRD, policies and permissions instead", cmp.Or(own, "unknown"), cmp.Or(managers, "unknown"))}
	}
	switch {
	case a.LessThan(b):
		return []Finding{problem(Warning, fmt.Sprintf("the plugin (%s) is older than the manager (%s), so the plugin may report changes in the manager's version as problems", own, managers), "Use the plugin version that matches the manager.")}
	case b.LessThan(a):
		return []Finding{problem(Warning, fmt.Sprintf("the plugin (%s) is newer than the manager (%s), so the manager may lack what the plugin's version added", own, managers), "Upgrade the manager, or use the plugin version that matches the manager.")}
	}
	return []Finding{passed("the plugin and the manager are both %s", own)}
}

// managerVersion returns the version in the Deployment's label, or in its image tag.
func managerVersion(h *HostFacts) string {
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
