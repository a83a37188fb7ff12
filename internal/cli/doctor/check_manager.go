package doctor

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/wording"
)

// CheckManager is the name of this check.
const CheckManager Check = "Manager"

var managerCheck = checkOf[*Facts]{name: CheckManager, judge: infallible(judgeManager)}

// managerFacts are the manager's Deployment and the leader's Lease.
type managerFacts struct {
	Deployment inspect.Object[appsv1.Deployment]
	Leader     inspect.Object[coordinationv1.Lease]
}

// managers selects the manager's Deployment and Pods.
var managers = client.MatchingLabels{command.LabelName: command.LabelNameValue, "control-plane": "controller-manager"}

// readManager reads the manager's Deployment, which names the manager's account, and the leader's Lease.
func readManager(ctx context.Context, r *inspect.Reader, h *HostFacts) {
	deployments := inspect.ReadList(ctx, r, "the manager's Deployment", &appsv1.DeploymentList{},
		func(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items }, client.InNamespace(h.Namespace), managers)
	h.Deployment.Read = deployments.Read
	if len(deployments.Items) > 0 {
		h.Deployment.Item = &deployments.Items[0]
		if name := h.Deployment.Item.Spec.Template.Spec.ServiceAccountName; name != "" {
			h.Account.Name = name
		}
	}
	h.Leader = inspect.ReadObject[coordinationv1.Lease](ctx, r, "Lease "+v1alpha1.LeaderLease, client.ObjectKey{Namespace: h.Namespace, Name: v1alpha1.LeaderLease})
}

// judgeManager checks whether a manager is running, and whether one is the leader.
func judgeManager(f *Facts) []Finding {
	h := &f.Host
	if !h.Deployment.Read || !h.Leader.Read {
		return nil
	}
	leads := h.Leader.Item != nil && !inspect.LeaseExpired(h.Leader.Item, h.At.Add(h.Clock.Ahead))
	logs := fmt.Sprintf("See `kubectl -n %s get pods` and `kubectl -n %s logs -l control-plane=controller-manager`.", h.Namespace, h.Namespace)
	d := h.Deployment.Item
	switch {
	case !leads && d == nil:
		return []Finding{problem(Error, fmt.Sprintf("no manager is running: namespace %q has no Xylem Deployment", h.Namespace), "Install the xylem chart, or specify the manager's namespace with --xylem-namespace.")}
	case !leads && ptr.Deref(d.Spec.Replicas, 1) == 0:
		return []Finding{problem(Error, fmt.Sprintf("no manager is running: Deployment \"%s/%s\" is scaled to 0", d.Namespace, d.Name), fmt.Sprintf("Scale the Deployment: kubectl -n %s scale deployment %s --replicas=2", d.Namespace, d.Name))}
	case !leads:
		return []Finding{problem(Error, inspect.LeaderAbsence(h.Namespace, h.Leader.Item, h.At.Add(h.Clock.Ahead)), logs)}
	case d == nil, ptr.Deref(d.Spec.Replicas, 1) == 0:
		return []Finding{passed("a manager is the leader, but it does not run in a Deployment in namespace %q", h.Namespace)}
	}
	if want, has := ptr.Deref(d.Spec.Replicas, 1), d.Status.AvailableReplicas; has < want || d.Status.UpdatedReplicas < want {
		return []Finding{problem(Warning, fmt.Sprintf("Deployment \"%s/%s\" has %d of %s available, %d up to date", d.Namespace, d.Name, has, wording.CountNoun(int(want), "replica"), d.Status.UpdatedReplicas), logs)}
	}
	if limit, need := memoryLimitOf(d), memoryNeeded(h.Registrations.Items); limit != nil && limit.Cmp(*need) < 0 {
		return []Finding{problem(Warning, fmt.Sprintf("the manager's memory limit is %s, but a restart with the volumes of all members needs about %s, and more with Pods", limit, need),
			fmt.Sprintf("Set the memory limit of container \"manager\" (resources.limits.memory of the chart) to %s or more. See \"Sizing\" in OPERATIONS.md.", need))}
	}
	return []Finding{passed("the manager has %s available, and one is the leader", wording.CountNoun(int(d.Status.AvailableReplicas), "replica"))}
}

// memoryLimitOf returns the memory limit of the manager's container, or nil if it has none.
func memoryLimitOf(d *appsv1.Deployment) *resource.Quantity {
	for _, c := range d.Spec.Template.Spec.Containers {
		if limit, limited := c.Resources.Limits[corev1.ResourceMemory]; limited && c.Name == "manager" {
			return &limit
		}
	}
	return nil
}

// What the manager's live heap consists of when it is idle, in bytes. OPERATIONS.md, "Sizing", has the
// measurements and the same formula.
const (
	heapAlone  = 20 << 20
	heapMember = 5 << 19
	heapVolume = 9 << 10
	// restartFactor is how much more memory a restart needs than the idle manager's live heap.
	restartFactor = 3
)

// memoryNeeded returns the memory limit that the manager needs for the volumes of the registrations, without Pods, in
// whole MiB.
func memoryNeeded(registrations []v1alpha1.ClusterRegistration) *resource.Quantity {
	heap := int64(heapAlone)
	for _, r := range registrations {
		v := r.Status.Volumes
		heap += heapMember + heapVolume*(int64(v.Bound)+int64(v.Pending)+int64(v.Deleting)+int64(v.Orphaned))
	}
	return resource.NewQuantity(restartFactor*heap>>20<<20, resource.BinarySI)
}
