package engine

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/fault/scenario"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const toDelete = `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`

// teardown removes the objects that a run has left behind, including retained volumes, as users and
// admins would. After an error, the rig cannot be reused.
func (b *bench) teardown(ctx context.Context, w *scenario.World, sc scenario.Scenario, s *start) error {
	if sc.Restore != nil {
		if err := sc.Restore(ctx, w); err != nil {
			return fmt.Errorf("restore after %s: %w", sc.Name, err)
		}
	}
	in := client.InNamespace(w.Namespace)
	if err := b.Host.API.DeleteAllOf(ctx, &appsv1.StatefulSet{}, in, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("delete StatefulSets: %w", err)
	}
	for _, step := range []struct {
		what string
		done func(context.Context) error
	}{
		// A claim cannot be deleted until its snapshots are ready.
		{"the deletion of the snapshots", func(ctx context.Context) error { return b.withoutSnapshots(ctx, w.Namespace, s) }},
		{"the deletion of Pods and claims", func(ctx context.Context) error { return b.emptied(ctx, w.Namespace) }},
		{"the deletion of the host's volumes", func(ctx context.Context) error { return b.withoutVolumes(ctx, b.Host, s) }},
		{"the deletion of the members' volumes", func(ctx context.Context) error {
			return errors.Join(b.withoutVolumes(ctx, b.Member(rig.One), s), b.withoutVolumes(ctx, b.Member(rig.Two), s))
		}},
		{"the deletion of the disks", func(context.Context) error { return b.withoutDisks(w.Namespace) }},
		{"the links to connect", b.Linked},
	} {
		if err := harness.Await(ctx, step.what, step.done); err != nil {
			return err
		}
	}
	err := b.Host.API.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}})
	if err != nil {
		return fmt.Errorf("delete namespace %s: %w", w.Namespace, err)
	}
	return nil
}

// emptied deletes the Pods and claims of a namespace in the host. It returns nil when none are left
// in any cluster. Repeat it until then, because controllers may still create some.
func (b *bench) emptied(ctx context.Context, namespace string) error {
	in := client.InNamespace(namespace)
	for _, obj := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		if err := b.Host.API.DeleteAllOf(ctx, obj, in); err != nil {
			return fmt.Errorf("delete %T: %w", obj, err)
		}
	}
	for _, c := range b.Clusters() {
		var pods corev1.PodList
		var claims corev1.PersistentVolumeClaimList
		if err := errors.Join(c.API.List(ctx, &pods, in), c.API.List(ctx, &claims, in)); err != nil {
			return fmt.Errorf("list the remaining objects in %s: %w", c.Name(), err)
		}
		if n := len(pods.Items) + len(claims.Items); n > 0 {
			return fmt.Errorf("%d Pods and %d claims are left in %s", len(pods.Items), len(claims.Items), c.Name())
		}
	}
	return nil
}

// withoutVolumes destroys a cluster's volumes that did not exist at the start of the run.
func (b *bench) withoutVolumes(ctx context.Context, c *harness.Cluster, s *start) error {
	var volumes corev1.PersistentVolumeList
	if err := c.API.List(ctx, &volumes); err != nil {
		return fmt.Errorf("list volumes of %s: %w", c.Name(), err)
	}
	left := 0
	for i := range volumes.Items {
		pv := &volumes.Items[i]
		if s.volumes[c.Name()+"/"+pv.Name] {
			continue
		}
		left++
		var errs []error
		if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			errs = append(errs, c.API.Patch(ctx, pv, client.RawPatch("application/merge-patch+json", []byte(toDelete))))
		}
		if c == b.Host && pv.DeletionTimestamp == nil {
			errs = append(errs, c.API.Delete(ctx, pv))
		}
		for _, err := range errs {
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("destroy volume %s in %s: %w", pv.Name, c.Name(), err)
			}
		}
	}
	if left > 0 {
		return fmt.Errorf("%d volumes are left in %s", left, c.Name())
	}
	return nil
}

// withoutSnapshots destroys a namespace's snapshots, and the contents that did not exist at the
// start of the run, first in the host and then in the members.
func (b *bench) withoutSnapshots(ctx context.Context, namespace string, s *start) error {
	for _, c := range b.Clusters() {
		if err := c.API.DeleteAllOf(ctx, &snapshotv1.VolumeSnapshot{}, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("delete snapshots of %s: %w", c.Name(), err)
		}
		var contents snapshotv1.VolumeSnapshotContentList
		if err := c.API.List(ctx, &contents); err != nil {
			return fmt.Errorf("list contents of %s: %w", c.Name(), err)
		}
		left := 0
		for i := range contents.Items {
			if s.volumes[c.Name()+"/"+contents.Items[i].Name] {
				continue
			}
			left++
			if err := destroyContent(ctx, c, &contents.Items[i]); err != nil {
				return err
			}
		}
		if left > 0 {
			return fmt.Errorf("%d contents are left in %s", left, c.Name())
		}
	}
	for _, m := range b.Members() {
		book, err := m.Ledger()
		if err != nil {
			return err
		}
		for id, snapshot := range book.LiveSnapshots() {
			if snapshot.ClaimNamespace == namespace {
				return fmt.Errorf("snapshot %s is left in %s", id, m.Name())
			}
		}
	}
	return nil
}

func destroyContent(ctx context.Context, c *harness.Cluster, content *snapshotv1.VolumeSnapshotContent) error {
	var errs []error
	if content.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentDelete {
		errs = append(errs, c.API.Patch(ctx, content, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deletionPolicy":"Delete"}}`))))
	}
	if content.DeletionTimestamp == nil {
		errs = append(errs, c.API.Delete(ctx, content))
	}
	for _, err := range errs {
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("destroy content %s in %s: %w", content.Name, c.Name(), err)
		}
	}
	return nil
}

func (b *bench) withoutDisks(namespace string) error {
	for _, m := range b.Members() {
		book, err := m.Ledger()
		if err != nil {
			return err
		}
		for id, disk := range book.Live() {
			if disk.ClaimNamespace == namespace {
				return fmt.Errorf("disk %s is left in %s", id, m.Name())
			}
		}
	}
	return nil
}
