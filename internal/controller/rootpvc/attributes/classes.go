package attributes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/internal/controller/rootpvc/observing"
	"github.com/xylem-io/xylem/internal/controller/rootpvc/reporting"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/placement"
)

// VolumeAttributesClasses are read live, one by one, when a leaf claim needs one. Few claims do,
// and a watch of a kind that a cluster may not serve would block the start of a link.
// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattributesclasses,verbs=get

// Classes finds and applies the classes of one member.
type Classes struct {
	*member.Link
	reports *reporting.Reporter
}

// New returns the classes of a member's link.
func New(link *member.Link, reports *reporting.Reporter) *Classes { return &Classes{link, reports} }

// WithClass returns the leaf claim to create, with the member's class to which the root's
// class maps. A leaf claim for an existing volume already has the volume's class.
func (c *Classes) WithClass(ctx context.Context, o observing.Claim, leaf *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	if leaf.Spec.VolumeName != "" || ptr.Deref(o.Root.Spec.VolumeAttributesClassName, "") == "" {
		return leaf, nil
	}
	class, err := index.Find[storagev1.StorageClass](ctx, c.Cache, index.Named(ptr.Deref(leaf.Spec.StorageClassName, "")))
	if err != nil {
		return nil, err
	}
	driver := ""
	if class != nil {
		driver = class.Provisioner
	}
	name, err := c.nameFor(ctx, o, driver)
	if err != nil {
		return nil, err
	}
	return pvc.WithAttributesClass(leaf, name, *o.Root.Spec.VolumeAttributesClassName), nil
}

// Modify sets the leaf claim's class to the member's class to which the root's class maps. If the
// user restores the former value, even an empty one, this cancels a failing change.
func (c *Classes) Modify(ctx context.Context, o observing.Claim) error {
	host, name := ptr.Deref(o.Root.Spec.VolumeAttributesClassName, ""), ""
	if host != "" {
		driver := ""
		if csi := o.Observed.Leaf.Spec.CSI; csi != nil {
			driver = csi.Driver
		}
		var err error
		if name, err = c.nameFor(ctx, o, driver); err != nil {
			return err
		}
	}
	if err := c.Leaf.Patch(ctx, reporting.Actor, o.Leaf, pvc.WithAttributesClass(o.Leaf, name, host)); err != nil {
		return c.reports.RefusedByMember(ctx, o.Root, "modify", err)
	}
	c.reports.EventModified(o.Root, name)
	return nil
}

// nameFor returns the name of the member's class to which the root's class maps. If that
// class is missing, or its driver is not the volume's, nameFor reports the problem and
// returns it as an error, so that the controller retries at a limited rate.
func (c *Classes) nameFor(ctx context.Context, o observing.Claim, driver string) (string, error) {
	name, problem, err := c.lookUp(ctx, *o.Root.Spec.VolumeAttributesClassName, driver)
	if err != nil || problem == nil {
		return name, err
	}
	if err := c.reports.Problem(ctx, o, problem); err != nil {
		return "", err
	}
	return "", problem
}

// lookUp reads the classes of both clusters. driver is the driver of the claim's
// volume.
func (c *Classes) lookUp(ctx context.Context, name, driver string) (string, *mirror.Refusal, error) {
	asked := placement.AttributesClass{Name: name, Driver: driver}
	var err error
	if asked.Host, err = index.Find[storagev1.VolumeAttributesClass](ctx, c.HostLive, index.Named(name)); err != nil {
		return "", nil, err
	}
	mapped, _ := c.Place().AttributesClassFor(name, asked.Host)
	asked.Class, err = index.Find[storagev1.VolumeAttributesClass](ctx, c.Live, index.Named(mapped))
	if asked.Forbidden = apierrors.IsForbidden(err); err != nil && !asked.Forbidden {
		return "", nil, err
	}
	if refusal := c.Place().RefuseAttributesClass(asked); refusal != nil {
		return "", refusal, nil
	}
	return mapped, nil, nil
}
