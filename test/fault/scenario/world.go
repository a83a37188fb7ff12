package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// Scenario is one action of a user or an admin, and its expected end state.
type Scenario struct {
	Name string
	// About is a one-line description.
	About string
	// Core scenarios are part of Slice.
	Core bool
	// Setup prepares the clusters for Act. No faults are injected during it.
	Setup Step
	// Act is the action during which faults are injected.
	Act Step
	// Settled returns nil once live reads show the expected end state.
	Settled Step
	// Restore, if set, undoes changes that remain after the namespace's objects are deleted.
	Restore Step
}

// Step is a part of a scenario.
type Step func(context.Context, *World) error

// do converts a method to a step.
func do(method func(*World, context.Context) error) Step {
	return func(ctx context.Context, w *World) error { return method(w, ctx) }
}

// World is the environment of a scenario: a rig, and a namespace of its own.
type World struct {
	*rig.Rig
	Namespace string

	mu    sync.Mutex
	notes map[string]string
}

// NewWorld returns the world of a run.
func NewWorld(r *rig.Rig, namespace string) *World {
	return &World{Rig: r, Namespace: namespace, notes: map[string]string{}}
}

// Note records a value for later steps of a scenario.
func (w *World) Note(key, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes[key] = value
}

// Noted returns a noted value.
func (w *World) Noted(key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.notes[key]
}

func (w *World) key(obj client.Object, name string) client.ObjectKey {
	switch obj.(type) {
	case *corev1.PersistentVolume, *corev1.Namespace, *corev1.Node, *storagev1.StorageClass, *v1alpha1.ClusterRegistration,
		*snapshotv1.VolumeSnapshotContent:
		return client.ObjectKey{Name: name}
	}
	return client.ObjectKey{Namespace: w.Namespace, Name: name}
}

// get reads an object of the scenario's namespace, or a cluster-scoped object.
func get[T any, P interface {
	*T
	client.Object
}](ctx context.Context, w *World, c *harness.Cluster, name string) (P, error) {
	obj := P(new(T))
	if err := c.API.Get(ctx, w.key(obj, name), obj); err != nil {
		return nil, fmt.Errorf("in %s: %w", c.Name(), err)
	}
	return obj, nil
}

// gone returns nil once an object no longer exists.
func gone[T any, P interface {
	*T
	client.Object
}](ctx context.Context, w *World, c *harness.Cluster, name string) error {
	obj, err := get[T, P](ctx, w, c, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%T %s is still in %s", obj, name, c.Name())
}

// The following functions create and change objects.

type claimOption = func(*corev1.PersistentVolumeClaim)

func (w *World) claimSpec(class string) corev1.PersistentVolumeClaimSpec {
	return harness.Claim(w.Namespace, "", class).Spec
}

func (w *World) createClaim(ctx context.Context, name, class string, options ...claimOption) error {
	claim := harness.Claim(w.Namespace, name, class)
	for _, option := range options {
		option(claim)
	}
	if err := w.Host.API.Create(ctx, claim); err != nil {
		return fmt.Errorf("create claim %s: %w", name, err)
	}
	return nil
}

func podSpec(node string, claims ...string) corev1.PodSpec {
	spec := harness.Pod("", "", claims...).Spec
	spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	return spec
}

// createApp creates the Pod that uses the claim, with a node selector.
func (w *World) createApp(ctx context.Context, node string) error {
	return w.createPod(ctx, app, data, node)
}

type podOption = func(*corev1.Pod)

// createPod creates a Pod that uses a claim, with a node selector.
func (w *World) createPod(ctx context.Context, name, claim, node string, options ...podOption) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}, Spec: podSpec(node, claim)}
	for _, option := range options {
		option(pod)
	}
	if err := w.Host.API.Create(ctx, pod); err != nil {
		return fmt.Errorf("create Pod %s: %w", name, err)
	}
	return nil
}

func (w *World) deleteApp(ctx context.Context) error {
	return w.delete(ctx, w.Host, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: app}})
}

func (w *World) deleteClaim(ctx context.Context) error {
	return w.delete(ctx, w.Host, w.claim())
}

func (w *World) delete(ctx context.Context, c *harness.Cluster, obj client.Object) error {
	if err := c.API.Delete(ctx, obj); err != nil {
		return fmt.Errorf("delete %T %s in %s: %w", obj, obj.GetName(), c.Name(), err)
	}
	return nil
}

func patch(ctx context.Context, c *harness.Cluster, obj client.Object, body string) error {
	if err := c.API.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		return fmt.Errorf("patch %T %s in %s: %w", obj, obj.GetName(), c.Name(), err)
	}
	return nil
}

// The following functions check the state of objects.

// running returns nil once the host shows the Pods as Running and Ready.
func (w *World) running(ctx context.Context, names ...string) error {
	for _, name := range names {
		pod, err := get[corev1.Pod](ctx, w, w.Host, name)
		if err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning || !ready(pod) || pod.DeletionTimestamp != nil {
			return fmt.Errorf("the host shows Pod %s as %s, want it running and ready", name, pod.Status.Phase)
		}
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// bound returns nil once the claim is Bound in the host and in the member.
func (w *World) bound(ctx context.Context, name, member string) error {
	for _, c := range []*harness.Cluster{w.Host, w.Member(member)} {
		claim, err := get[corev1.PersistentVolumeClaim](ctx, w, c, name)
		if err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("claim %s is %s in %s, want %s", name, claim.Status.Phase, c.Name(), corev1.ClaimBound)
		}
	}
	return nil
}

// volumeOf returns the name of the volume to which a claim in the host is bound.
func (w *World) volumeOf(ctx context.Context, name string) (string, error) {
	claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Host, name)
	if err != nil {
		return "", err
	}
	return claim.Spec.VolumeName, nil
}

// volumePhase returns nil once a PV has the given phase in the given clusters.
func (w *World) volumePhase(ctx context.Context, name string, phase corev1.PersistentVolumePhase, clusters ...*harness.Cluster) error {
	for _, c := range clusters {
		pv, err := get[corev1.PersistentVolume](ctx, w, c, name)
		if err != nil {
			return err
		}
		if pv.Status.Phase != phase {
			return fmt.Errorf("volume %s is %s in %s, want %s", name, pv.Status.Phase, c.Name(), phase)
		}
	}
	return nil
}

// disks returns nil once the member has this many disks of a claim.
func (w *World) disks(member, claim string, want int) error {
	book, err := w.Member(member).Ledger()
	if err != nil {
		return err
	}
	if live := book.ForClaim(w.Namespace, claim).LiveIDs(); len(live) != want {
		return fmt.Errorf("%s has the disks %v of claim %s, want %d", member, live, claim, want)
	}
	return nil
}

// copied returns nil once all disks that a member's driver created for a claim are copies of
// another claim's disk.
func (w *World) copied(member, source, claim string) error {
	book, err := w.Member(member).Ledger()
	if err != nil {
		return err
	}
	sources := book.ForClaim(w.Namespace, source).LiveIDs()
	for id, disk := range book.ForClaim(w.Namespace, claim).Live() {
		if !slices.Contains(sources, disk.Source) {
			return fmt.Errorf("%s has disk %s of claim %s, which was filled from %q, want a disk of claim %s (%v)", member, id, claim, disk.Source, source, sources)
		}
	}
	return nil
}

// nothing returns nil once no Pods or claims with these names are left in the given clusters.
func (w *World) nothing(ctx context.Context, names []string, clusters ...*harness.Cluster) error {
	for _, c := range clusters {
		for _, name := range names {
			err := errors.Join(gone[corev1.Pod](ctx, w, c, name), gone[corev1.PersistentVolumeClaim](ctx, w, c, name))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
