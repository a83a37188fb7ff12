package virtualnode

import (
	"hash/fnv"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// leaseToWrite returns a Node's Lease as this replica must write it, or nil if another replica renewed
// it recently. lease is the existing Lease, or nil.
func leaseToWrite(node *corev1.Node, lease *coordinationv1.Lease, identity string, now metav1.MicroTime) *coordinationv1.Lease {
	after := lease.DeepCopy()
	switch {
	case lease == nil:
		after = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node.Name}}
	case !leaseHeldBy(lease, identity) && lease.Spec.RenewTime != nil && leaseOwnedBy(lease, node) && now.Sub(lease.Spec.RenewTime.Time) < freshLease:
		return nil
	}
	metav1.SetMetaDataLabel(&after.ObjectMeta, v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)
	// Kubernetes deletes the Lease with its Node. It also deletes the Lease of an earlier Node with
	// the same name, unless the Lease gets the new Node as its owner in time.
	after.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	if !leaseHeldBy(lease, identity) {
		after.Spec.AcquireTime = &now
	}
	after.Spec.HolderIdentity = &identity
	after.Spec.LeaseDurationSeconds = ptr.To(int32(leaseDuration / time.Second))
	after.Spec.RenewTime = &now
	return after
}

func leaseHeldBy(lease *coordinationv1.Lease, identity string) bool {
	return lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") == identity
}

func leaseOwnedBy(lease *coordinationv1.Lease, node *corev1.Node) bool {
	return lease != nil && slices.ContainsFunc(lease.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == node.UID })
}

// timeToNextRenewal returns the time until this replica next checks a Node's Lease. It checks once in
// each interval, at an offset that depends on the Node and the replica. This spreads the
// calls, and the replicas check at different times.
func timeToNextRenewal(now time.Time, identity, node string) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(identity + "/" + node)) // never fails
	offset := time.Duration(hash.Sum32()) * time.Microsecond % renewInterval
	since := (time.Duration(now.UnixNano())%renewInterval - offset + renewInterval) % renewInterval
	if wait := renewInterval - since; wait > renewPrecision {
		return wait
	}
	return renewInterval // the current check is up to renewPrecision early
}
