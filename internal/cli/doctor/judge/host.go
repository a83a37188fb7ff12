package judge

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/doctor/facts"
	"github.com/xylem-io/xylem/internal/cli/status"
	"github.com/xylem-io/xylem/internal/cli/why/diagnose"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/text"
)

// gatesNeeded are the feature gates that Xylem relies on, with the effect of turning each one off.
// All are on by default in every supported version that has them.
var gatesNeeded = map[string]string{
	"ValidatingAdmissionPolicy":       "Xylem's admission policies are not in force",
	"NominatedNodeNameForExpectation": "the scheduler does not nominate a node before it binds volumes, so the manager doesn't create the leaf Pods that provisioners wait for",
	"VolumeAttributesClass":           "claims cannot have a VolumeAttributesClass",
	"AnyVolumeDataSource":             "the API server drops claims' data sources other than snapshots and claims",
	"HonorPVReclaimPolicy":            "a PersistentVolume may disappear before its disk is deleted",
}

// controllersNeeded are controllers of kube-controller-manager that Xylem relies on.
var controllersNeeded = []string{"persistentvolume-binder-controller", "persistentvolume-binder", "persistentvolumeclaim-protection-controller", "pvc-protection", "pod-garbage-collector-controller", "podgc"}

// controlPlane checks the settings of the control plane, as far as they are visible.
func controlPlane(h *facts.Host) []Finding {
	var found []Finding
	off := map[string]string{}
	if h.Gates.Item != nil {
		for name, on := range *h.Gates.Item {
			if gatesNeeded[name] != "" && !on {
				off[name] = "kube-apiserver"
			}
		}
	}
	seen := map[string]bool{}
	for i := range h.Control.Items {
		pod := &h.Control.Items[i]
		component := pod.Labels["component"]
		seen[component] = true
		flags := flagsOf(pod)
		for name, on := range gatesIn(flags["feature-gates"]) {
			if gatesNeeded[name] != "" && !on {
				off[name] = component
			}
		}
		for _, name := range strings.Split(flags["controllers"], ",") {
			if without, disabled := strings.CutPrefix(name, "-"); disabled && slices.Contains(controllersNeeded, without) {
				found = append(found, Finding{Error, CheckControlPlane, "", fmt.Sprintf("%s runs without controller %q (--controllers), which Xylem relies on to bind volumes, protect claims in use, or clean up Pods", component, without), fmt.Sprintf("Remove -%s from the flag --controllers of %s.", without, component)})
			}
		}
		if slices.Contains(strings.Split(flags["disable-admission-plugins"], ","), "ValidatingAdmissionPolicy") {
			found = append(found, Finding{Error, CheckControlPlane, "", component + " runs with --disable-admission-plugins=ValidatingAdmissionPolicy, so Xylem's admission policies are not in force", "Remove ValidatingAdmissionPolicy from the flag --disable-admission-plugins."})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(off)) {
		found = append(found, Finding{Error, CheckControlPlane, "", fmt.Sprintf("%s runs with feature gate %s=false: %s", off[name], name, gatesNeeded[name]), fmt.Sprintf("Turn on feature gate %s in %s.", name, off[name])})
	}
	switch {
	case len(found) > 0:
	case !h.Gates.Read && len(seen) == 0:
		return nil
	case !seen["kube-scheduler"]:
		found = append(found, ok(CheckControlPlane, "", "no feature gate that Xylem needs is off in the API server; the scheduler's settings are not visible"))
	default:
		found = append(found, ok(CheckControlPlane, "", "no feature gate or controller that Xylem needs is off"))
	}
	return found
}

// flagsOf returns the flags of a Pod's first container.
func flagsOf(pod *corev1.Pod) map[string]string {
	flags := map[string]string{}
	if len(pod.Spec.Containers) == 0 {
		return flags
	}
	c := pod.Spec.Containers[0]
	for _, arg := range slices.Concat(c.Command, c.Args) {
		if name, value, set := strings.Cut(strings.TrimLeft(arg, "-"), "="); set {
			flags[name] = value
		}
	}
	return flags
}

func gatesIn(flag string) map[string]bool {
	gates := map[string]bool{}
	for _, entry := range strings.Split(flag, ",") {
		if name, value, set := strings.Cut(entry, "="); set {
			gates[name] = strings.EqualFold(value, "true")
		}
	}
	return gates
}

// Doctor reports a warning or an error if the difference between two clocks exceeds these.
const (
	skewSmall = 10 * time.Second
	skewLarge = time.Minute
)

// clockHere compares the clock of this machine with the host's.
func clockHere(h *facts.Host) []Finding {
	c := h.Clock
	switch {
	case !c.Known:
		return nil
	case c.Ahead.Abs()-c.Precision > skewLarge:
		return []Finding{{Warning, CheckClock, "", fmt.Sprintf("the clock of this machine is %s the host's, so kubectl prints wrong ages, and may misjudge whether tokens have expired", apart(-c.Ahead)), "Synchronize this machine's clock (NTP), or the host's if that one is wrong."}}
	}
	return []Finding{ok(CheckClock, "", "the clocks of this machine and the host differ by less than %s", within(c.Ahead, c.Precision))}
}

func apart(ahead time.Duration) string {
	if ahead < 0 {
		return fmt.Sprintf("%s behind", (-ahead).Round(time.Second))
	}
	return fmt.Sprintf("%s ahead of", ahead.Round(time.Second))
}

func within(ahead, precision time.Duration) time.Duration {
	return (ahead.Abs() + precision).Truncate(time.Second) + time.Second
}

// registrations reports the conditions of registrations that an admin must check.
func registrations(h *facts.Host) []Finding {
	if !h.Registrations.Read || h.Definition.Absent() {
		return nil
	}
	var found []Finding
	for i := range h.Registrations.Items {
		r := &h.Registrations.Items[i]
		for _, c := range status.Problems(r) {
			level := Warning
			switch c.Type {
			case v1alpha1.ConditionConnected, v1alpha1.ConditionNodeReady, v1alpha1.ConditionSynced:
				if c.Status != "True" {
					level = Error
				}
			}
			what, toDo := diagnose.Explain(c.Reason, c.Message)
			found = append(found, Finding{level, CheckMembers, r.Name, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, what), toDo})
		}
	}
	switch n := len(h.Registrations.Items); {
	case n == 0:
		return []Finding{ok(CheckMembers, "", "no cluster is registered yet")}
	case len(found) == 0:
		return []Finding{ok(CheckMembers, "", "%s, and the manager reports no problems", text.Count(n, "registration"))}
	}
	return found
}

// tokenSoon is how long before a token's expiry doctor warns if the manager does not renew the
// token.
const tokenSoon = 12 * time.Hour

// tokens checks when the manager's tokens for members expire.
func tokens(f *facts.Facts) []Finding {
	h := &f.Host
	if !h.Registrations.Read || len(h.Registrations.Items) == 0 {
		return nil
	}
	issued := map[string]time.Time{}
	for i := range f.Members {
		issued[f.Members[i].Registration] = f.Members[i].Issued
	}
	now := h.At.Add(h.Clock.Ahead)
	var found []Finding
	earliest := time.Time{}
	for i := range h.Registrations.Items {
		r := &h.Registrations.Items[i]
		if r.Status.TokenExpires == nil {
			continue
		}
		ends := r.Status.TokenExpires.Time
		renewed := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionTokenFresh) != nil
		age := ""
		if at := issued[r.Name]; !at.IsZero() {
			age = fmt.Sprintf(", issued %s ago,", now.Sub(at).Round(time.Minute))
		}
		const renew = "Run `kubectl xylem register %s --member-kubeconfig FILE` again. The command requests a token that the manager renews."
		switch left := ends.Sub(now); {
		case left <= 0:
			found = append(found, Finding{Error, CheckTokens, r.Name, fmt.Sprintf("the manager's token%s expired %s ago", age, (-left).Round(time.Minute)), fmt.Sprintf(renew, r.Name)})
		case left < tokenSoon && !renewed:
			found = append(found, Finding{Warning, CheckTokens, r.Name, fmt.Sprintf("the manager's token%s expires in %s, and the manager doesn't renew it", age, left.Round(time.Minute)), fmt.Sprintf(renew, r.Name)})
		}
		if earliest.IsZero() || ends.Before(earliest) {
			earliest = ends
		}
	}
	switch {
	case len(found) > 0:
		return found
	case earliest.IsZero():
		return []Finding{ok(CheckTokens, "", "no credentials for members are known to expire")}
	}
	return []Finding{ok(CheckTokens, "", "no token for a member expires within %s", earliest.Sub(now).Round(time.Minute))}
}

// nodeAPI checks whether the API server reaches the manager as the kubelet of virtual nodes.
func nodeAPI(h *facts.Host) []Finding {
	if !h.Nodes.Read || len(h.Nodes.Items) == 0 {
		return nil
	}
	if len(h.Paths) == 0 {
		return []Finding{ok(CheckNodeAPI, "", "virtual nodes have no kubelet endpoint, so kubectl logs, exec and port-forward are disabled (--node-api-bind-address)")}
	}
	var reached int
	failed := map[string][]string{} // nodes by error; usually, all have the same error, because they share an address
	for _, node := range slices.Sorted(maps.Keys(h.Paths)) {
		switch p := h.Paths[node]; {
		case p.Code == http.StatusOK:
			reached++
		case p.Own: // the user lacks permission for the check
		case p.Code == http.StatusForbidden, p.Code == http.StatusUnauthorized:
			const rejects = "the manager rejects the API server, whose client certificate is missing or has no permission for nodes/proxy"
			failed[rejects] = append(failed[rejects], node)
		default:
			failed[p.Detail] = append(failed[p.Detail], node)
		}
	}
	var found []Finding
	for _, why := range slices.Sorted(maps.Keys(failed)) {
		found = append(found, Finding{Error, CheckNodeAPI, "", fmt.Sprintf("kubectl logs and exec don't work for Pods on %s, because the API server can't reach the manager as the kubelet: %s", named("node", failed[why]), why),
			"Allow the control plane to reach the manager's Pods on the node API port (10250), including in NetworkPolicies and egress selectors. See charts/xylem/NODES.md."})
	}
	if len(found) == 0 && reached > 0 {
		found = append(found, ok(CheckNodeAPI, "", "the API server reaches the manager as the kubelet of %s", text.Count(reached, "virtual node")))
	}
	return found
}

// daemonSets finds DaemonSets that create Pods for virtual nodes.
func daemonSets(h *facts.Host) []Finding {
	if !h.DaemonSets.Read || !h.Nodes.Read {
		return nil
	}
	var names []string
	for i := range h.DaemonSets.Items {
		d := &h.DaemonSets.Items[i]
		if slices.ContainsFunc(h.Nodes.Items, func(n corev1.Node) bool { return runsOn(d, &n) }) {
			names = append(names, d.Namespace+"/"+d.Name)
		}
	}
	if len(names) > 0 {
		return []Finding{{Warning, CheckDaemonSets, "", fmt.Sprintf("the DaemonSet controller creates Pods of %s for virtual nodes, but Xylem doesn't push them. The Pods stay Pending, and a rolling update may never complete", named("DaemonSet", names)),
			`Exclude virtual nodes in the DaemonSet's node affinity: {key: xylem.io/virtual-node, operator: DoesNotExist}.`}}
	}
	return []Finding{ok(CheckDaemonSets, "", "no DaemonSet creates Pods for virtual nodes")}
}

// tolerated are the tolerations that the DaemonSet controller adds to all its Pods
// (k8s.io/kubernetes/pkg/controller/daemon/util: AddOrUpdateDaemonPodTolerations).
var tolerated = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

func runsOn(d *appsv1.DaemonSet, node *corev1.Node) bool {
	pod := &corev1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, tolerated...)
	// Ignore the taint of an away member, because it is temporary.
	keepsOff := func(t corev1.Taint) bool { return t.Key != v1alpha1.TaintMemberAway }
	return placement.Selects(pod, node) && !slices.ContainsFunc(placement.Untolerated(pod, node), keepsOff)
}

// snapshotPatience is how long the snapshot-controller may take to bind a VolumeSnapshot.
const snapshotPatience = 2 * time.Minute

// hostSnapshots checks whether the host's snapshot-controller runs, if VolumeSnapshots wait for it.
func hostSnapshots(h *facts.Host) []Finding {
	switch {
	case h.Snapshots.Item == nil:
		return nil
	case !*h.Snapshots.Item:
		return []Finding{ok(CheckSnapshots, "", "the host serves no VolumeSnapshots")}
	}
	var waiting []string
	longest := time.Duration(0)
	for _, s := range h.Unbound.Items {
		if s.Age > snapshotPatience {
			waiting, longest = append(waiting, s.Namespace+"/"+s.Name), max(longest, s.Age)
		}
	}
	if len(waiting) > 0 {
		return []Finding{{Warning, CheckSnapshots, "", fmt.Sprintf("no content has been bound to %s for up to %s. The host's snapshot-controller isn't running, or rejects the snapshots", named("VolumeSnapshot", waiting), longest.Round(time.Second)),
			"Run one snapshot-controller in the host, and check the snapshots' events."}}
	}
	if !h.Unbound.Read {
		return nil
	}
	return []Finding{ok(CheckSnapshots, "", "the host serves VolumeSnapshots, and none is waiting for the snapshot-controller")}
}
