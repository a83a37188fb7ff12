package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// The second member's classes that Xylem publishes in the host.
const (
	reflectedClass = "reflected"
	passingClass   = "passing"
)

// reflected returns the scenarios in which Xylem publishes the second member's classes in the host.
func reflected() []Scenario {
	return []Scenario{{
		Name: "reflect", About: "a member's classes are published in the host: one is re-created with another policy, and one is deleted",
		Setup: func(ctx context.Context, w *World) error {
			return patch(ctx, w.Host, registration(),
				`{"spec":{"storage":{"reflect":{"enabled":true,"selector":{"matchLabels":{"fault":"reflect"}}}}}}`)
		},
		Act:     do((*World).changeClasses),
		Settled: do((*World).classesFollow),
		Restore: do((*World).reflectNoMore),
	}}
}

// changeClasses changes the member's classes step by step. Each step waits until the host shows the
// result of the previous one.
func (w *World) changeClasses(ctx context.Context) error {
	member := w.Member(rig.Two)
	first := memberClass(reflectedClass, corev1.PersistentVolumeReclaimDelete)
	passing := memberClass(passingClass, corev1.PersistentVolumeReclaimDelete)
	for _, class := range []*storagev1.StorageClass{first, passing} {
		if err := member.API.Create(ctx, class); err != nil {
			return fmt.Errorf("create class %s: %w", class.Name, err)
		}
	}
	if err := harness.Await(ctx, "the host to publish the classes", func(ctx context.Context) error {
		return errors.Join(w.published(ctx, reflectedClass, corev1.PersistentVolumeReclaimDelete), w.published(ctx, passingClass, corev1.PersistentVolumeReclaimDelete))
	}); err != nil {
		return err
	}
	for _, class := range []*storagev1.StorageClass{first, passing} {
		if err := member.API.Delete(ctx, class); err != nil {
			return fmt.Errorf("delete class %s: %w", class.Name, err)
		}
	}
	again := memberClass(reflectedClass, corev1.PersistentVolumeReclaimRetain)
	if err := member.API.Create(ctx, again); err != nil {
		return fmt.Errorf("re-create class %s: %w", again.Name, err)
	}
	return nil
}

func (w *World) classesFollow(ctx context.Context) error {
	return errors.Join(w.published(ctx, reflectedClass, corev1.PersistentVolumeReclaimRetain), gone[storagev1.StorageClass](ctx, w, w.Host, passingClass))
}

// published returns nil once the host has the class with that policy, and the member offers it.
func (w *World) published(ctx context.Context, name string, policy corev1.PersistentVolumeReclaimPolicy) error {
	class, err := get[storagev1.StorageClass](ctx, w, w.Host, name)
	if err != nil {
		return err
	}
	if class.DeletionTimestamp != nil || class.ReclaimPolicy == nil || *class.ReclaimPolicy != policy ||
		class.Labels[v1alpha1.LabelOfferedByPrefix+rig.Two] == "" || len(class.AllowedTopologies) == 0 {
		return fmt.Errorf("class %s is not offered with policy %s: %+v", name, policy, class)
	}
	return nil
}

func (w *World) reflectNoMore(ctx context.Context) error {
	if err := patch(ctx, w.Host, registration(), `{"spec":{"storage":{"reflect":{"enabled":false,"selector":null}}}}`); err != nil {
		return err
	}
	for _, name := range []string{reflectedClass, passingClass} {
		if err := w.delete(ctx, w.Member(rig.Two), memberClass(name, corev1.PersistentVolumeReclaimDelete)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return harness.Await(ctx, "the deletion of the host's classes", func(ctx context.Context) error {
		return errors.Join(gone[storagev1.StorageClass](ctx, w, w.Host, reflectedClass), gone[storagev1.StorageClass](ctx, w, w.Host, passingClass))
	})
}

func memberClass(name string, policy corev1.PersistentVolumeReclaimPolicy) *storagev1.StorageClass {
	class := controlplane.Class(name, storagev1.VolumeBindingWaitForFirstConsumer, policy)
	class.Provisioner = controlplane.DefaultDriverName
	class.Labels = map[string]string{"fault": "reflect"}
	return &class
}
