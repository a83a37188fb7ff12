package move

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/move/objects"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// NothingToDo is returned if there is nothing to do for a claim. Other claims of the same
// StatefulSet may still need the command.
type NothingToDo struct {
	// Err explains why.
	Err error
}

// Error implements error.
func (n NothingToDo) Error() string { return n.Err.Error() }

// Unwrap returns the wrapped error, for errors.Is and errors.As.
func (n NothingToDo) Unwrap() error { return n.Err }

// planMove checks everything that a move of a claim to a member needs, and returns the record of the
// move.
func planMove(ctx context.Context, h *objects.Client, name, member string) (*objects.Record, error) {
	all, err := h.Registrations(ctx)
	if err != nil {
		return nil, err
	}
	to, err := Fleet(all).registrationNamed(member)
	if err != nil {
		return nil, err
	}
	claim, old, err := boundClaimAndVolume(ctx, h, name)
	if err != nil {
		return nil, err
	}
	from, err := registrationOfOrigin(all, claim, old, to)
	if err != nil {
		return nil, err
	}
	for _, cr := range []*v1alpha1.ClusterRegistration{from, to} {
		if _, err := usableNodeOf(ctx, h, cr); err != nil {
			return nil, err
		}
	}
	id := objects.NewMoveID()
	r := &objects.Record{
		ID: id, Phase: objects.Copying, Claim: objects.ClaimManifest(claim), ClaimUID: claim.UID, Copy: objects.NameForMove(name, id),
		From: objects.PlaceOf(from), To: objects.PlaceOf(to),
		Old: objects.DiskOf(old),
	}
	if _, err := Fleet(all).Restored(r.From, r.To); err != nil {
		return nil, err
	}
	if err := checkMemberSuits(ctx, h, name, r.CopyClaim(old), to); err != nil {
		return nil, err
	}
	return r, objects.ProveUnused(ctx, h, "", name)
}

// boundClaimAndVolume returns a claim and its volume, or an error if they cannot be moved.
func boundClaimAndVolume(ctx context.Context, h *objects.Client, name string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	claim, err := h.ReadClaim(ctx, name)
	switch {
	case err != nil:
		return nil, nil, err
	case claim == nil:
		return nil, nil, fmt.Errorf("no claim %q in namespace %q. `kubectl get pvc -n %s` lists the claims", name, h.Namespace, h.Namespace)
	case claim.DeletionTimestamp != nil:
		return nil, nil, fmt.Errorf("claim %q is being deleted. Create it again before you move it", name)
	case claim.Status.Phase != corev1.ClaimBound:
		return nil, nil, fmt.Errorf("claim %q is not bound (its phase is %s), so there is no data to move. `kubectl xylem why pvc/%s -n %s` shows why the claim is not bound", name, claim.Status.Phase, name, h.Namespace)
	case len(claim.Spec.AccessModes) == 1 && claim.Spec.AccessModes[0] == corev1.ReadOnlyMany:
		return nil, nil, fmt.Errorf("claim %q has only access mode ReadOnlyMany, so this command cannot write a copy. Create the data in the other member in the same way as in the current member", name)
	}
	old, err := h.ReadVolumeOf(ctx, claim)
	switch {
	case err != nil:
		return nil, nil, err
	case old == nil:
		return nil, nil, fmt.Errorf("claim %q has lost its volume %q. `kubectl xylem why pvc/%s -n %s` shows what to do", name, claim.Spec.VolumeName, name, h.Namespace)
	case hostpv.IsPromise(old):
		return nil, nil, fmt.Errorf("claim %q has a class with %s=%s, and such claims cannot be moved. Copy the data to another claim", name, v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningPromise)
	}
	return claim, old, nil
}

// registrationOfOrigin returns the member that has the volume.
func registrationOfOrigin(all Fleet, claim *corev1.PersistentVolumeClaim, old *corev1.PersistentVolume, to *v1alpha1.ClusterRegistration) (*v1alpha1.ClusterRegistration, error) {
	clusterID, _, _, ours := hostpv.LeafOfHostVolume(old)
	from := all.registrationOfCluster(clusterID)
	switch {
	case !ours:
		return nil, fmt.Errorf("volume %q of claim %q is not in a member, but this command moves volumes only between members. Copy the data to another claim", old.Name, claim.Name)
	case from == nil:
		return nil, fmt.Errorf("the cluster with ID %s, which has volume %q, is not registered. Register it again, so that Xylem can use its volumes", clusterID, old.Name)
	case to.Status.ClusterID == "":
		return nil, fmt.Errorf("the manager has not connected to member %q yet. `kubectl describe clusterregistration %s` shows why", to.Name, to.Name)
	case clusterID == to.Status.ClusterID:
		return nil, NothingToDo{Err: fmt.Errorf("the data of claim %q is already in member %q", claim.Name, to.Name)}
	}
	return from, nil
}
