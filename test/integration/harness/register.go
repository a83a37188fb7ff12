package harness

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/config"
	"github.com/xylem-io/xylem/test/controlplane"
)

// SecretName returns the name of a registration's Secret.
func SecretName(registration string) string { return registration + "-kubeconfig" }

// Register registers a member under a name, and waits until the registration is Ready. The
// kubeconfig contains a token for the member's ServiceAccount and uses the member's proxy.
func (x *Xylem) Register(ctx context.Context, name, member string, change ...func(*v1alpha1.ClusterRegistration)) error {
	kubeconfig, err := x.MemberKubeconfig(ctx, member)
	if err != nil {
		return err
	}
	if err := x.SetKubeconfig(ctx, name, kubeconfig); err != nil {
		return err
	}
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cr.Spec.KubeconfigSecretRef.Name = SecretName(name)
	cr.Spec.Node.PodCIDRs = []string{v1alpha1.AllPodCIDRs}
	for _, f := range change {
		f(cr)
	}
	if err := x.Host.API.Create(ctx, cr); err != nil {
		return fmt.Errorf("register %s: %w", name, err)
	}
	return x.AwaitReady(ctx, name)
}

// AwaitReady waits until a registration is Ready.
func (x *Xylem) AwaitReady(ctx context.Context, name string) error {
	return Await(ctx, "registration "+name, func(ctx context.Context) error {
		var cr v1alpha1.ClusterRegistration
		if err := x.Host.API.Get(ctx, client.ObjectKey{Name: name}, &cr); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(cr.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("conditions %+v", cr.Status.Conditions)
		}
		return nil
	})
}

// Counts returns the sum of all registrations' volume counts. It returns an error if a registration
// does not report that its volumes are accounted for.
func (x *Xylem) Counts(ctx context.Context) (sum v1alpha1.VolumeCounts, err error) {
	var all v1alpha1.ClusterRegistrationList
	if err := x.Host.API.List(ctx, &all); err != nil {
		return sum, fmt.Errorf("list the registrations: %w", err)
	}
	for i := range all.Items {
		cr := &all.Items[i]
		if !meta.IsStatusConditionTrue(cr.Status.Conditions, v1alpha1.ConditionVolumesAccounted) {
			return sum, fmt.Errorf("registration %s: conditions %+v", cr.Name, cr.Status.Conditions)
		}
		counts := cr.Status.Volumes
		sum.Bound += counts.Bound
		sum.Pending += counts.Pending
		sum.Deleting += counts.Deleting
		sum.Orphaned += counts.Orphaned
	}
	return sum, nil
}

// MemberKubeconfig returns a kubeconfig with a new token for Xylem's ServiceAccount in the member.
// It uses the member's proxy, unless Options.Front redirects it.
func (x *Xylem) MemberKubeconfig(ctx context.Context, member string) ([]byte, error) {
	c := x.Fleet.Member(member)
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, controlplane.ViaProxy, v1alpha1.DefaultNamespace, memberAccount)
	if err != nil {
		return nil, err
	}
	return x.front(c, kubeconfig)
}

// SetKubeconfig stores a kubeconfig in a registration's Secret.
func (x *Xylem) SetKubeconfig(ctx context.Context, registration string, kubeconfig []byte) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: SecretName(registration)},
		Data:       map[string][]byte{v1alpha1.KubeconfigKey: kubeconfig},
	}
	err := x.Host.API.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = x.Host.API.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", secret.Name, err)
	}
	return nil
}

// Deregister deletes a registration, confirms the deregistration, and waits until it is complete.
func (x *Xylem) Deregister(ctx context.Context, name string) error {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	confirm := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationConfirmDeregister, name)
	if err := x.Host.API.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", confirm)); err != nil {
		return fmt.Errorf("confirm the deregistration of %s: %w", name, err)
	}
	if err := x.Host.API.Delete(ctx, cr); err != nil {
		return fmt.Errorf("deregister %s: %w", name, err)
	}
	return Await(ctx, "the deletion of registration "+name, func(ctx context.Context) error {
		err := x.Host.API.Get(ctx, client.ObjectKeyFromObject(cr), cr)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("conditions %+v", cr.Status.Conditions)
	})
}

// Shares makes a registration share a backend. classes are the member's classes.
func Shares(backend, driver string, classes ...string) func(*v1alpha1.ClusterRegistration) {
	return func(cr *v1alpha1.ClusterRegistration) {
		cr.Spec.Storage.Shared = []v1alpha1.SharedBackend{{Name: backend, Driver: driver, Classes: classes}}
	}
}

// SharedPart returns the part of config/member that lets Xylem create copies of volumes, for these
// drivers and Secrets, as the member's admin applies it.
func SharedPart(drivers, secrets []string) ([]client.Object, error) {
	objects, err := config.Member(config.PartShared)
	if err != nil {
		return nil, fmt.Errorf("read the part %s: %w", config.PartShared, err)
	}
	if err := config.Share(objects, drivers, secrets); err != nil {
		return nil, fmt.Errorf("fill in the part %s: %w", config.PartShared, err)
	}
	var part []client.Object
	for _, obj := range objects {
		if obj.GetName() == "xylem-member-shared" {
			part = append(part, obj)
		}
	}
	if len(part) != 2 {
		return nil, fmt.Errorf("the part %s has %d objects, want a ClusterRole and its binding", config.PartShared, len(part))
	}
	return part, nil
}

// AllowCopies lets Xylem create copies of a driver's volumes in a member.
func (c *Cluster) AllowCopies(ctx context.Context, driver string) error {
	part, err := SharedPart([]string{driver}, nil)
	if err != nil {
		return err
	}
	return c.Create(ctx, part...)
}

// CopiesOf returns a member's PVs that are copies of the volume of a host PV.
func (c *Cluster) CopiesOf(ctx context.Context, host string) ([]corev1.PersistentVolume, error) {
	var all corev1.PersistentVolumeList
	if err := c.API.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list the volumes of %s: %w", c.Name(), err)
	}
	return slices.DeleteFunc(all.Items, func(pv corev1.PersistentVolume) bool { return pv.Annotations[v1alpha1.AnnotationCopyOf] != host }), nil
}
