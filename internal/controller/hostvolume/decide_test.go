package hostvolume

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

func mirrored(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "leaf"}}
	leaf.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk", VolumeHandle: "1"}
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "root"}}
	pv := hostpv.TranslateVolume(leaf, root, corev1.PersistentVolumeReclaimDelete, mirror.Member{ClusterID: "member", Registration: "one"})
	pv.Annotations[v1alpha1.AnnotationAbandon] = "true"
	for _, f := range change {
		f(pv)
	}
	return pv
}

func in(phase corev1.PersistentVolumePhase) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Status.Phase = phase }
}

func deleted(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &metav1.Time{} }

func withoutFinalizer(pv *corev1.PersistentVolume) { pv.Finalizers = nil }

// promise returns a promise that is neither fulfilled nor abandoned.
func promise(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "root"}}
	pv := hostpv.NewPromiseFor(claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}})
	for _, f := range change {
		f(pv)
	}
	return pv
}

func placed(pv *corev1.PersistentVolume) {
	pv.Labels = map[string]string{v1alpha1.LabelClusterID: "member"}
}

func abandoned(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationAbandon] = "true" }

func freed(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }

func retained(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// scratch returns a fulfilled promise whose disk is released with its last Pod.
func scratch(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "root"}}
	m := mirror.Member{ClusterID: "member", Registration: "one"}
	pv := hostpv.NewPromiseFor(claim, &storagev1.StorageClass{Parameters: map[string]string{v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused}})
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "leaf"}}
	pv = hostpv.FulfillPromise(hostpv.PromiseWithMember(pv, m, nil), leaf, corev1.PersistentVolumeReclaimDelete, m)
	for _, f := range change {
		f(pv)
	}
	return pv
}

func takenFrom(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationAbandon] = "member" }

// stepFor returns the step that Reconcile would take for a PV. claim, if not nil, has the name of
// the PV's claim.
func stepFor(t *testing.T, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) lifecycle.Step {
	t.Helper()
	r := &Reconciler{Client: cached{reads: reads{volume: pv, claim: claim}}}
	s, err := r.observeVolume(t.Context(), types.NamespacedName{Name: "pv"})
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		return lifecycle.None
	}
	return lifecycle.NextPlan(s).StepOwnedBy(lifecycle.HostVolume)
}

// cached is a cache with one PV and one claim.
type cached struct {
	client.Client
	reads reads
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return c.reads.Get(ctx, key, into, opts...)
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		want lifecycle.Step
	}{
		"the PV is gone":                                                 {nil, lifecycle.None},
		"not abandoned":                                                  {mirrored(func(pv *corev1.PersistentVolume) { delete(pv.Annotations, v1alpha1.AnnotationAbandon) }), lifecycle.None},
		"the abandon annotation is \"false\"":                            {mirrored(func(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationAbandon] = "false" }), lifecycle.None},
		"the PV's label was edited":                                      {mirrored(in(corev1.VolumeReleased), func(pv *corev1.PersistentVolume) { pv.Labels[v1alpha1.LabelClusterID] = "edited" }), lifecycle.None},
		"a foreign volume":                                               {mirrored(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "disk" }), lifecycle.None},
		"bound: the claim keeps the PV":                                  {mirrored(in(corev1.VolumeBound)), lifecycle.AbandonHost},
		"bound, without Xylem's finalizer":                               {mirrored(in(corev1.VolumeBound), withoutFinalizer), lifecycle.None},
		"released: no claim needs the PV":                                {mirrored(in(corev1.VolumeReleased)), lifecycle.DeleteHost},
		"freed: no claim is bound to the PV":                             {mirrored(in(corev1.VolumeAvailable), freed), lifecycle.DeleteHost},
		"reclaiming failed":                                              {mirrored(in(corev1.VolumeFailed)), lifecycle.DeleteHost},
		"released, and already without Xylem's finalizer":                {mirrored(in(corev1.VolumeReleased), withoutFinalizer), lifecycle.DeleteHost},
		"released, and being deleted":                                    {mirrored(in(corev1.VolumeReleased), deleted), lifecycle.AbandonHost},
		"bound, and being deleted":                                       {mirrored(in(corev1.VolumeBound), deleted), lifecycle.AbandonHost},
		"released, being deleted, and already without Xylem's finalizer": {mirrored(in(corev1.VolumeReleased), deleted, withoutFinalizer), lifecycle.None},
		"available": {mirrored(in(corev1.VolumeAvailable)), lifecycle.AbandonHost},
		"released, being deleted, and kept only for a member's copy": {mirrored(in(corev1.VolumeReleased), deleted, withoutFinalizer, func(pv *corev1.PersistentVolume) {
			pv.Finalizers = []string{v1alpha1.FinalizerCopyPrefix + "id39"}
		}), lifecycle.AbandonHost},

		"a promise: its claim was deleted":                                          {promise(in(corev1.VolumeReleased)), lifecycle.DropPromise},
		"a promise: its claim was deleted, and reclaiming failed":                   {promise(in(corev1.VolumeFailed)), lifecycle.DropPromise},
		"a promise: its claim was deleted, and its policy is Retain":                {promise(in(corev1.VolumeReleased), retained), lifecycle.DropPromise},
		"a promise: its claim was deleted, and the promise is being deleted":        {promise(in(corev1.VolumeReleased), deleted), lifecycle.DropPromise},
		"a promise: its claim was deleted, and Xylem's finalizer was removed":       {promise(in(corev1.VolumeReleased), deleted, withoutFinalizer), lifecycle.None},
		"a promise: its claim exists":                                               {promise(in(corev1.VolumeBound)), lifecycle.None},
		"a promise: its claim exists, but the promise is being deleted":             {promise(in(corev1.VolumeBound), deleted), lifecycle.None},
		"a promise: not bound yet":                                                  {promise(in(corev1.VolumeAvailable)), lifecycle.None},
		"a promise: freed by an admin":                                              {promise(in(corev1.VolumeAvailable), freed), lifecycle.None},
		"a promise: freed by an admin, and being deleted":                           {promise(in(corev1.VolumeAvailable), freed, deleted), lifecycle.DropFinalizer},
		"a promise that a member has: root_pv owns it":                              {promise(in(corev1.VolumeReleased), placed), lifecycle.None},
		"an abandoned promise that a member has":                                    {promise(in(corev1.VolumeReleased), placed, abandoned), lifecycle.DeleteHost},
		"an abandoned promise that a member has, and that is being deleted":         {promise(in(corev1.VolumeReleased), placed, abandoned, deleted), lifecycle.AbandonHost},
		"an abandoned promise that a member has, and whose claim exists":            {promise(in(corev1.VolumeBound), placed, abandoned), lifecycle.FreePromise},
		"an abandoned, fulfilled WhenUnused promise":                                {scratch(in(corev1.VolumeBound), abandoned), lifecycle.FreePromise},
		"an abandoned, fulfilled WhenUnused promise whose cluster was deregistered": {scratch(in(corev1.VolumeBound), abandoned, withoutFinalizer), lifecycle.FreePromise},
		"an abandoned, fulfilled WhenUnused promise whose claim was deleted":        {scratch(in(corev1.VolumeReleased), abandoned), lifecycle.DeleteHost},
		"a fulfilled WhenUnused promise":                                            {scratch(in(corev1.VolumeBound)), lifecycle.None},
		"a promise that was taken from its member":                                  {promise(in(corev1.VolumeBound), takenFrom), lifecycle.None},
		"an abandoned promise that no member has":                                   {promise(in(corev1.VolumeBound), abandoned), lifecycle.FreePromise},
		"an abandoned promise that no member has, and that is being deleted":        {promise(in(corev1.VolumeBound), abandoned, deleted), lifecycle.AbandonHost},
		"a promise that was taken from its member, and that a member now has again": {promise(in(corev1.VolumeBound), takenFrom, placed), lifecycle.None},
		"a promise that was taken from its member, and its claim was deleted":       {promise(in(corev1.VolumeReleased), takenFrom), lifecycle.DropPromise},
		"a promise with an incomplete record": {promise(in(corev1.VolumeReleased), func(pv *corev1.PersistentVolume) {
			pv.Annotations[v1alpha1.AnnotationVolume] = "member/pvc-1"
		}), lifecycle.None},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stepFor(t, tc.pv, nil); got != tc.want {
				t.Errorf("step is %q, want %q", got, tc.want)
			}
		})
	}
}
