package heartbeat

import (
	"hash/fnv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

type act int

const (
	leave act = iota
	create
	renew
)

type decision struct {
	do    act
	lease *coordinationv1.Lease // as it is to be, unless it is left alone
}

// decide what to do about a Node's Lease, nil if there is none.
func decide(node *corev1.Node, lease *coordinationv1.Lease, identity string, now metav1.MicroTime) decision {
	do, after := renew, lease.DeepCopy()
	switch {
	case lease == nil:
		do, after = create, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node.Name}}
	case !heldBy(lease, identity) && lease.Spec.RenewTime != nil && owned(lease, node) && now.Sub(lease.Spec.RenewTime.Time) < fresh:
		return decision{do: leave}
	}
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	after.Labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedByValue
	// Kubernetes removes the Lease with its Node, and one that an earlier Node of
	// the name left behind as well, unless it is given to the new one in time.
	after.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	if !heldBy(lease, identity) {
		after.Spec.AcquireTime = &now
	}
	after.Spec.HolderIdentity = &identity
	after.Spec.LeaseDurationSeconds = ptr.To(int32(leaseDuration / time.Second))
	after.Spec.RenewTime = &now
	return decision{do: do, lease: after}
}

func heldBy(lease *coordinationv1.Lease, identity string) bool {
	return lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") == identity
}

func owned(lease *coordinationv1.Lease, node *corev1.Node) bool {
	for _, owner := range lease.OwnerReferences {
		if owner.UID == node.UID {
			return true
		}
	}
	return false
}

// untilNext is how long until a Node's next turn on this replica. Turns come
// once an interval, at an offset that is the Node's and the replica's own: so
// that the calls are spread, and replicas look at different moments.
func untilNext(now time.Time, identity, node string) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(identity + "/" + node)) // never fails
	offset := time.Duration(hash.Sum32()) * time.Microsecond % interval
	since := (time.Duration(now.UnixNano())%interval - offset + interval) % interval
	if wait := interval - since; wait > tick {
		return wait
	}
	return interval // this turn was just taken, a tick early
}
