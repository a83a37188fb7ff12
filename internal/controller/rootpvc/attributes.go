package rootpvc

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// VolumeAttributesClasses are read live, one by one, when a leaf claim needs one. Few claims do,
// and a watch of a kind that a cluster may not serve would block the start of a link.
// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattributesclasses,verbs=get

// withAttributesClass returns the leaf claim to create, with the member's class to which the root's
// class maps. A leaf claim for an existing volume already has the volume's class.
func (r *reconciler) withAttributesClass(ctx context.Context, o observe.Claim, leaf *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	if leaf.Spec.VolumeName != "" || ptr.Deref(o.Root.Spec.VolumeAttributesClassName, "") == "" {
		return leaf, nil
	}
	class, err := index.FindObject[storagev1.StorageClass](ctx, r.Cache, index.ClusterScopedKey(ptr.Deref(leaf.Spec.StorageClassName, "")))
	if err != nil {
		return nil, err
	}
	driver := ""
	if class != nil {
		driver = class.Provisioner
	}
	name, err := r.attributesClassFor(ctx, o, driver)
	if err != nil {
		return nil, err
	}
	return pvc.ClaimWithAttributesClass(leaf, name, *o.Root.Spec.VolumeAttributesClassName), nil
}

// modify sets the leaf claim's class to the member's class to which the root's class maps. If the
// user restores the former value, even an empty one, this cancels a failing change.
func (r *reconciler) modify(ctx context.Context, o observe.Claim) error {
	host, name := ptr.Deref(o.Root.Spec.VolumeAttributesClassName, ""), ""
	if host != "" {
		driver := ""
		if csi := o.Observed.Leaf.Spec.CSI; csi != nil {
			driver = csi.Driver
		}
		var err error
		if name, err = r.attributesClassFor(ctx, o, driver); err != nil {
			return err
		}
	}
	if err := r.MemberWriter.PatchStamped(ctx, actor, o.Leaf, pvc.ClaimWithAttributesClass(o.Leaf, name, host)); err != nil {
		return r.reports.ReportMemberRejection(ctx, o.Root, "modify", err)
	}
	r.reports.EventAttributesModified(o.Root, name)
	return nil
}

// attributesClassFor returns the name of the member's class to which the root's class maps. If that
// class is missing, or its driver is not the volume's, attributesClassFor reports the problem and
// returns it as an error, so that the controller retries at a limited rate.
func (r *reconciler) attributesClassFor(ctx context.Context, o observe.Claim, driver string) (string, error) {
	name, problem, err := r.lookUpAttributesClass(ctx, *o.Root.Spec.VolumeAttributesClassName, driver)
	if err != nil || problem == nil {
		return name, err
	}
	if err := r.reports.ReportProblem(ctx, o, problem); err != nil {
		return "", err
	}
	return "", problem
}

// lookUpAttributesClass reads the classes of both clusters. driver is the driver of the claim's
// volume.
func (r *reconciler) lookUpAttributesClass(ctx context.Context, name, driver string) (string, *mirror.Refusal, error) {
	asked := placement.AttributesClass{Name: name, Driver: driver}
	var err error
	if asked.Host, err = index.FindObject[storagev1.VolumeAttributesClass](ctx, r.HostLive, index.ClusterScopedKey(name)); err != nil {
		return "", nil, err
	}
	mapped, _ := r.PlacementMember().AttributesClassFor(name, asked.Host)
	asked.Class, err = index.FindObject[storagev1.VolumeAttributesClass](ctx, r.Live, index.ClusterScopedKey(mapped))
	if asked.Forbidden = apierrors.IsForbidden(err); err != nil && !asked.Forbidden {
		return "", nil, err
	}
	if refusal := r.PlacementMember().RefuseAttributesClass(asked); refusal != nil {
		return "", refusal, nil
	}
	return mapped, nil, nil
}
