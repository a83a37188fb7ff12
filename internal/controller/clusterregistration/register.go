package clusterregistration

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
)

// fleetRegistration returns the registration for the fleet. It sets Refused if something in the host
// prevents connecting the member.
func (r *Reconciler) fleetRegistration(ctx context.Context, cr *v1alpha1.ClusterRegistration) (fleet.Registration, error) {
	wanted := fleet.Registration{
		Member:         mirror.Member{Registration: cr.Name, NodeName: cr.NodeName(), NodeGroups: cr.Spec.Nodes, HostID: r.HostID, HostShowsPodResources: r.HostShowsPodResources, Leaving: cr.DeletionTimestamp != nil},
		Rules:          placement.RulesOfRegistration(cr),
		UID:            cr.UID,
		ConfirmRestore: cr.Annotations[v1alpha1.AnnotationConfirmRestore],
	}
	wanted.PriorityClasses = placement.ClassesByHostName(cr.Spec.Pods.PriorityClasses)
	var err error
	if server := cr.Spec.APIServer; server != nil {
		caBundle := server.CABundle
		if len(caBundle) == 0 {
			caBundle = r.HostCABundle
		}
		if wanted.APIServer, err = mirror.APIServerOf(server.URL, caBundle); err != nil {
			wanted.LinkProblem = newProblemf(v1alpha1.ReasonKubeconfigInvalid, "spec.apiServer.url: %v", err)
			return wanted, nil
		}
	}
	if wanted.PodCIDRs, err = parseRanges(cr.Spec.Node.PodCIDRs); err != nil { // the CRD's validation rejects this, but the object may predate it
		wanted.LinkProblem = newProblemf(v1alpha1.ReasonKubeconfigInvalid, "spec.node.podCIDRs: %v", err)
		return wanted, nil
	}
	if wanted.Reachable, err = parseRanges(cr.Spec.Services.Reachable); err != nil {
		wanted.LinkProblem = newProblemf(v1alpha1.ReasonKubeconfigInvalid, "spec.services.reachable: %v", err)
		return wanted, nil
	}
	wanted.ReflectServices = cr.Spec.Services.Reflect != v1alpha1.ReflectNoServices
	if wanted.LinkProblem, err = r.nodeNameProblem(ctx, cr); err != nil || wanted.LinkProblem != nil {
		return wanted, err
	}
	var secret corev1.Secret
	name := cr.Spec.KubeconfigSecretRef.Name
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		wanted.LinkProblem = newProblemf(v1alpha1.ReasonSecretNotFound,
			"no Secret \"%s/%s\". Create it with the member's kubeconfig under the key %q", r.Namespace, name, v1alpha1.KubeconfigKey)
	case err != nil:
		return wanted, fmt.Errorf("read Secret %s/%s: %w", r.Namespace, name, err)
	case len(secret.Data[v1alpha1.KubeconfigKey]) == 0:
		wanted.LinkProblem = newProblemf(v1alpha1.ReasonSecretNotFound,
			"Secret \"%s/%s\" has no value under the key %q. Put the member's kubeconfig under that key", r.Namespace, name, v1alpha1.KubeconfigKey)
	default:
		wanted.Kubeconfig = secret.Data[v1alpha1.KubeconfigKey]
	}
	return wanted, nil
}

// parseRanges parses a list of CIDRs, or the word all.
func parseRanges(cidrs []string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for _, cidr := range cidrs {
		if cidr == v1alpha1.AllPodCIDRs {
			return mirror.AllPodCIDRs, nil
		}
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, err //nolint:wrapcheck // the caller names the field
		}
		ranges = append(ranges, prefix)
	}
	return ranges, nil
}

// nodeNameProblem rejects a registration whose node name belongs to an ordinary node or to an older
// registration, because Xylem must not push the Pods that are bound there.
func (r *Reconciler) nodeNameProblem(ctx context.Context, cr *v1alpha1.ClusterRegistration) (*access.ConnectionProblem, error) {
	node, err := index.FindObject[corev1.Node](ctx, r.Client, index.ClusterScopedKey(cr.NodeName()))
	if err != nil {
		return nil, err
	}
	if taken := takenNodeProblem(node, cr.Status.ClusterID); taken != nil {
		return taken, nil
	}
	var others v1alpha1.ClusterRegistrationList
	if err := r.Client.List(ctx, &others); err != nil {
		return nil, fmt.Errorf("list registrations: %w", err)
	}
	for i := range others.Items {
		other := &others.Items[i]
		if other.UID != cr.UID && nodeNamesConflict(other, cr) && isOlderRegistration(other, cr) {
			return newProblemf(v1alpha1.ReasonNodeNameTaken, "%s. Delete this registration, and create it again with another spec.node.name", describeNodeConflict(other, cr)), nil
		}
	}
	return nil, nil
}

// nodeNamesConflict reports whether two registrations have the same node name, or the node name of one could be that of
// a group of the other's nodes.
func nodeNamesConflict(a, b *v1alpha1.ClusterRegistration) bool {
	return a.HasNode(b.NodeName()) || b.HasNode(a.NodeName())
}

func describeNodeConflict(other, cr *v1alpha1.ClusterRegistration) string {
	if other.NodeName() == cr.NodeName() {
		return fmt.Sprintf("registration %q already has node %q", other.Name, cr.NodeName())
	}
	last := cr.NodeName()
	if other.HasNode(last) {
		last = other.NodeName()
	}
	return fmt.Sprintf("registration %q already has node %q, and this registration has node %q, but all nodes whose names end in %q belong to the same member (see spec.nodes)",
		other.Name, other.NodeName(), cr.NodeName(), "."+last)
}

// takenNodeProblem rejects a node name that belongs to another cluster's virtual node or to an
// ordinary node. While the member's identity is unknown, it can only reject an ordinary node.
func takenNodeProblem(node *corev1.Node, clusterID string) *access.ConnectionProblem {
	if node == nil || clusterID == "" && nodes.IsVirtual(node) || !nodes.NameTaken(node, clusterID) {
		return nil
	}
	return newProblemf(v1alpha1.ReasonNodeNameTaken, "%s", nodes.DescribeNameTaken(node))
}

func isOlderRegistration(a, b *v1alpha1.ClusterRegistration) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

func newProblemf(reason, format string, args ...any) *access.ConnectionProblem {
	return &access.ConnectionProblem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// ensureOwnership records a registration as the owner of its cluster. If another registration owns the cluster,
// own rejects this one, for as long as the owner exists, connected or not.
func (r *Reconciler) ensureOwnership(ctx context.Context, all []v1alpha1.ClusterRegistration, cr *v1alpha1.ClusterRegistration, clusterID string) error {
	recorded, err := r.Records.OwnerOfCluster(ctx, clusterID)
	if err != nil {
		return err
	}
	if owner := ownerOfCluster(recorded, all, clusterID); owner != nil && owner.UID != cr.UID {
		return newProblemf(v1alpha1.ReasonDuplicateCluster,
			access.AlreadyRegisteredFormat+". Delete this registration, or delete the other one so that this one takes over",
			owner.Name)
	}
	if recorded == cr.UID {
		return nil
	}
	return r.Records.SetClusterOwner(ctx, guarded.NewHostWriter(r.Client, cr.Name, guarded.HostOnlyGuard{}), clusterID, recorded, cr.UID)
}

// ownerOfCluster returns the registration that owns a cluster, or nil. The owner is the registration that
// the record names. If that one was deleted, or if the record names none because an earlier version
// wrote it, the owner is the oldest registration with the cluster in its status.
func ownerOfCluster(recorded types.UID, all []v1alpha1.ClusterRegistration, clusterID string) *v1alpha1.ClusterRegistration {
	var oldest *v1alpha1.ClusterRegistration
	for i := range all {
		cr := &all[i]
		switch {
		case cr.UID == recorded && (cr.Status.ClusterID == "" || cr.Status.ClusterID == clusterID):
			return cr
		case cr.Status.ClusterID == clusterID && (oldest == nil || isOlderRegistration(cr, oldest)):
			oldest = cr
		}
	}
	return oldest
}

// AdmitMember records the identity of a member at its first connection. It rejects a cluster that differs
// from the recorded one, that another registration owns, or that is the host itself. It returns a
// Problem for errors that an admin can fix. The fleet calls AdmitMember after it has read the member's
// identity.
func (r *Reconciler) AdmitMember(ctx context.Context, wanted fleet.Registration, identity member.Identity) error {
	// Other controllers may write the status and the record concurrently.
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return r.admitMemberOnce(ctx, wanted, identity) })
}

func (r *Reconciler) admitMemberOnce(ctx context.Context, wanted fleet.Registration, identity member.Identity) error {
	var list v1alpha1.ClusterRegistrationList
	if err := r.Live.List(ctx, &list); err != nil {
		return fmt.Errorf("list registrations: %w", err)
	}
	var cr *v1alpha1.ClusterRegistration
	for i := range list.Items {
		if list.Items[i].UID == wanted.UID {
			cr = &list.Items[i]
		}
	}
	switch {
	case cr == nil:
		return newProblemf(v1alpha1.ReasonConnecting, "the registration was deleted")
	case identity.ClusterID == r.HostID:
		return newProblemf(v1alpha1.ReasonIsHost, access.IsHostFormat+". Put the member's kubeconfig into the Secret", "the kubeconfig")
	case cr.Status.ClusterID != "" && cr.Status.ClusterID != identity.ClusterID:
		return newProblemf(v1alpha1.ReasonIdentityChanged,
			access.OtherClusterFormat+": the member was re-created, or the kubeconfig is for another cluster. Xylem does not read from or write to that cluster. If the change is intended, delete this registration and register the cluster again",
			"the kubeconfig", identity.ClusterID, "this registration", cr.Status.ClusterID)
	}
	node, err := index.FindObject[corev1.Node](ctx, r.Live, index.ClusterScopedKey(cr.NodeName()))
	if err != nil {
		return err
	}
	if taken := takenNodeProblem(node, identity.ClusterID); taken != nil {
		return taken
	}
	if err := r.ensureOwnership(ctx, list.Items, cr, identity.ClusterID); err != nil {
		return err
	}
	if cr.Status.ClusterID != "" {
		return nil
	}
	before := cr.DeepCopy()
	cr.Status.ClusterID = identity.ClusterID
	cr.Status.KubernetesVersion = identity.Version
	if err := r.Client.Status().Patch(ctx, cr, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return fmt.Errorf("record the identity of registration %s: %w", cr.Name, err)
	}
	return nil
}
