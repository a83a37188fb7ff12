package observe

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/volume"
)

// changing is a cache in which an object exists only after, or only until, its first read.
type changing struct {
	client.Reader
	key     client.ObjectKey
	appears bool
	wasRead *bool
}

func (c changing) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	if key == c.key {
		first := !*c.wasRead
		*c.wasRead = true
		if first == c.appears {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
	}
	return c.Reader.Get(ctx, key, into, o...)
}

// A claim may be created, and a leaf PV deleted, between two reads of the caches. A step never lacks its object.
func TestObjectsChangeDuringObservation(t *testing.T) {
	root := rootClaim()
	root.Spec.VolumeName = "pv-2"
	o := observer(root, heldLeaf())
	earlier := rootClaim()
	earlier.UID = "earlier-root"
	stale := o.Cache.(arriving)
	mirror.OriginForRoot(here.HostID, earlier).StampLeaf(stale.claims[0])
	mirror.OriginForRoot(here.HostID, earlier).StampLeaf(stale.volumes[0])
	o.Host = changing{Reader: o.Host, key: client.ObjectKeyFromObject(root), appears: true, wasRead: new(bool)}
	c, err := o.ObserveClaim(t.Context(), client.ObjectKeyFromObject(root))
	if err != nil {
		t.Fatal(err)
	}
	if c.Root == nil {
		t.Errorf("the observation has successor %v, but no root", c.Observed.Successor)
	}

	o = observer(rootClaim(), heldLeaf())
	o.Cache = changing{Reader: o.Cache, key: client.ObjectKey{Name: "pv-1"}, wasRead: new(bool)}
	if s, err := o.ObserveLeafVolume(t.Context(), "pv-1"); err != nil || s != nil {
		t.Errorf("a deleted leaf PV is observed as %+v, %v", s, err)
	}
}

// A Pod that uses a marked promise restarts its grace period, even if the mark cannot be removed meanwhile.
func TestUseRestartsTheGracePeriod(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	promise := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "xylem-promise", UID: "promise", Annotations: map[string]string{
			v1alpha1.AnnotationUnusedSince: now.Format(time.RFC3339), v1alpha1.AnnotationMockPV: "true",
			"pv.kubernetes.io/provisioned-by": v1alpha1.ProvisionerName}},
		Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "root-uid"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: v1alpha1.PromiseDriverName, VolumeAttributes: map[string]string{v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused}}}},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	u := NewUnusedPromises()
	u.Begin(promise.UID, promise.Annotations[v1alpha1.AnnotationUnusedSince], now)
	observe := func(users ...corev1.Pod) bool {
		s := &volume.Observed{Name: "pv-1", Host: promise, PromiseUsers: users}
		if !s.ReleasedWhenUnused() {
			t.Fatal("the promise is not released when unused")
		}
		u.Observe(s, now.Add(time.Hour), func(metav1.Object) bool { return false })
		return s.Unused.PodsListed
	}
	if !observe() {
		t.Error("the grace period ended without a Pod")
	}
	if observe(corev1.Pod{}) || observe() {
		t.Error("the grace period did not start again after a Pod's use")
	}
}
