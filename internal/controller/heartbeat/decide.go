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
	lease *coordinationv1.Lease // nil if do is leave
}

// decide decides what to do with a Node's Lease, which may be nil.
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
	// Kubernetes deletes the Lease with its Node. It also deletes the Lease of an earlier Node with
	// the same name, unless the Lease gets the new Node as its owner in time.
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

// untilNext returns the time until this replica next checks a Node's Lease. It checks once in
// each interval, at an offset that depends on the Node and the replica. This spreads the
// calls, and the replicas check at different times.
func untilNext(now time.Time, identity, node string) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(identity + "/" + node)) // never fails
	offset := time.Duration(hash.Sum32()) * time.Microsecond % interval
	since := (time.Duration(now.UnixNano())%interval - offset + interval) % interval
	if wait := interval - since; wait > tick {
		return wait
	}
	return interval // the current check is up to a tick early
}
