package main

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	space        = "shop"
	classMirror  = "mirrored"
	classPromise = "promised"
	// keptClaim is never deleted.
	keptClaim = "kept"
	// pace is the interval at which live creates a claim and checks all claims.
	pace = 700 * time.Millisecond
	// age is the age at which a claim is expanded, and the time from its expansion to its deletion.
	age = 8 * time.Second
)

var grownSize = resource.MustParse("2Gi")

// prepare creates the classes, the namespace, a member's namespace rules, and the claim that the
// host loses later, with a snapshot.
func (w *workload) prepare(ctx context.Context) error {
	for name, mode := range map[string]string{classMirror: v1alpha1.ProvisioningMirror, classPromise: v1alpha1.ProvisioningPromise} {
		if err := w.x.Host.Create(ctx, harness.HostClass(name, map[string]string{v1alpha1.ParameterProvisioning: mode})); err != nil {
			return err
		}
	}
	if err := w.x.Host.Create(ctx, harness.SnapshotClass(controlplane.ClassSnapshots, snapshotv1.VolumeSnapshotContentDelete, nil)); err != nil {
		return err
	}
	if err := w.x.Host.CreateNamespace(ctx, space); err != nil {
		return err
	}
	if err := w.admit(ctx, "kube-*"); err != nil {
		return err
	}
	if err := w.make(ctx, keptClaim, classMirror, steady); err != nil {
		return err
	}
	return w.x.Host.Create(ctx, snapshotOf(keptClaim))
}

// snapshotOf returns a snapshot of a claim, with the claim's name.
func snapshotOf(claim string) *snapshotv1.VolumeSnapshot {
	return harness.VolumeSnapshot(space, claim, claim, controlplane.ClassSnapshots)
}

// make creates a claim and its Pod, which runs in one of the members.
func (w *workload) make(ctx context.Context, name, class string, members ...string) error {
	nodes := make([]string, 0, len(members))
	for _, member := range members {
		nodes = append(nodes, v1alpha1.DefaultNodeNamePrefix+member)
	}
	pod := harness.Pod(space, name, name)
	harness.OnNodes(pod, nodes...)
	return w.x.Host.Create(ctx, harness.Claim(space, name, class), pod)
}

// live creates claims, each with a Pod, at a steady pace. It expands each claim after a few seconds
// and takes a snapshot of it. Later, it deletes all of them.
func (w *workload) live(ctx context.Context) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	grown := map[string]time.Time{}
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		members := [][]string{{steady}, {troubled}, {steady, troubled}}[i%3]
		class := classMirror
		if i%4 == 0 {
			class = classPromise
		}
		err := w.make(ctx, fmt.Sprintf("claim-%04d", i), class, members...)
		if err == nil {
			err = w.age(ctx, grown)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// age expands the claims that are old enough, takes snapshots of them, and later deletes them.
func (w *workload) age(ctx context.Context, grown map[string]time.Time) error {
	var claims corev1.PersistentVolumeClaimList
	if err := w.x.Host.API.List(ctx, &claims, client.InNamespace(space)); err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	var pods corev1.PodList
	if err := w.x.Host.API.List(ctx, &pods, client.InNamespace(space)); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	running := map[string]bool{}
	for i := range pods.Items {
		running[pods.Items[i].Name] = pods.Items[i].Status.Phase == corev1.PodRunning
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Name == keptClaim || claim.DeletionTimestamp != nil || !running[claim.Name] || time.Since(claim.CreationTimestamp.Time) < age {
			continue
		}
		if claim.Spec.Resources.Requests.Storage().Cmp(grownSize) < 0 {
			grow := fmt.Appendf(nil, `{"spec":{"resources":{"requests":{"storage":%q}}}}`, grownSize.String())
			if err := w.x.Host.API.Patch(ctx, claim, client.RawPatch("application/merge-patch+json", grow)); err != nil {
				return fmt.Errorf("expand claim %s: %w", claim.Name, err)
			}
			if err := w.x.Host.API.Create(ctx, snapshotOf(claim.Name)); client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("take a snapshot of claim %s: %w", claim.Name, err)
			}
			continue
		}
		if claim.Status.Capacity.Storage().Cmp(grownSize) < 0 {
			continue
		}
		if grown[claim.Name].IsZero() {
			grown[claim.Name] = time.Now()
		}
		if time.Since(grown[claim.Name]) < age {
			continue
		}
		for _, obj := range []client.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: claim.Name}}, snapshotOf(claim.Name), claim} {
			if err := w.x.Host.API.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %T %s: %w", obj, claim.Name, err)
			}
		}
	}
	return nil
}
