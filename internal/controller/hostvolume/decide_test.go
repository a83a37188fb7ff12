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
	"github.com/xylem-io/xylem/internal/volume"
)

func mirrored(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "leaf"}}
	leaf.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk", VolumeHandle: "1"}
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "root"}}
	pv := hostpv.Mirror(leaf, root, corev1.PersistentVolumeReclaimDelete, mirror.Member{ClusterID: "member", Registration: "one"})
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

func letGone(pv *corev1.PersistentVolume) { pv.Finalizers = nil }

// promise is one that nobody has fulfilled, and abandoned by nobody.
func promise(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "root"}}
	pv := hostpv.PromiseFor(claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}})
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

// scratch is a fulfilled promise whose disk goes with its last Pod.
func scratch(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "root"}}
	m := mirror.Member{ClusterID: "member", Registration: "one"}
	pv := hostpv.PromiseFor(claim, &storagev1.StorageClass{Parameters: map[string]string{v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused}})
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "leaf"}}
	pv = hostpv.Fulfil(hostpv.WithMember(pv, m, nil), leaf, corev1.PersistentVolumeReclaimDelete, m)
	for _, f := range change {
		f(pv)
	}
	return pv
}

func takenFrom(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationAbandon] = "member" }

// stepFor a PV whose claim's name a claim may have, as Reconcile finds it.
func stepFor(t *testing.T, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) volume.Step {
	t.Helper()
	r := &Reconciler{Client: cached{reads: reads{volume: pv, claim: claim}}}
	s, err := r.observe(t.Context(), types.NamespacedName{Name: "pv"})
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		return volume.None
	}
	return volume.Next(s).By(volume.HostVolume)
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
		want volume.Step
	}{
		"gone":                         {nil, volume.None},
		"not abandoned":                {mirrored(func(pv *corev1.PersistentVolume) { delete(pv.Annotations, v1alpha1.AnnotationAbandon) }), volume.None},
		"abandoned: false":             {mirrored(func(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationAbandon] = "false" }), volume.None},
		"somebody else's volume":       {mirrored(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "disk" }), volume.None},
		"bound: the claim keeps it":    {mirrored(in(corev1.VolumeBound)), volume.ReleaseHost},
		"bound, let go of":             {mirrored(in(corev1.VolumeBound), letGone), volume.None},
		"released: nobody needs it":    {mirrored(in(corev1.VolumeReleased)), volume.DeleteHost},
		"free: no claim is to have it": {mirrored(in(corev1.VolumeAvailable), freed), volume.DeleteHost},
		"reclaiming it failed":         {mirrored(in(corev1.VolumeFailed)), volume.DeleteHost},
		"released, let go of before":   {mirrored(in(corev1.VolumeReleased), letGone), volume.DeleteHost},
		"released, being deleted":      {mirrored(in(corev1.VolumeReleased), deleted), volume.ReleaseHost},
		"bound, being deleted":         {mirrored(in(corev1.VolumeBound), deleted), volume.ReleaseHost},
		"let go of, others hold it":    {mirrored(in(corev1.VolumeReleased), deleted, letGone), volume.None},
		"available":                    {mirrored(in(corev1.VolumeAvailable)), volume.ReleaseHost},

		"a promise: its claim is gone":                            {promise(in(corev1.VolumeReleased)), volume.DropPromise},
		"a promise: its claim is gone, reclaiming it failed":      {promise(in(corev1.VolumeFailed)), volume.DropPromise},
		"a promise: its claim is gone, its class retains":         {promise(in(corev1.VolumeReleased), retained), volume.DropPromise},
		"a promise: its claim is gone, being deleted":             {promise(in(corev1.VolumeReleased), deleted), volume.DropPromise},
		"a promise: its claim is gone, let go of":                 {promise(in(corev1.VolumeReleased), deleted, letGone), volume.None},
		"a promise: its claim lives":                              {promise(in(corev1.VolumeBound)), volume.None},
		"a promise: its claim lives, being deleted":               {promise(in(corev1.VolumeBound), deleted), volume.None},
		"a promise: not bound yet":                                {promise(in(corev1.VolumeAvailable)), volume.None},
		"a promise: freed by an admin":                            {promise(in(corev1.VolumeAvailable), freed), volume.None},
		"a promise: freed by an admin, being deleted":             {promise(in(corev1.VolumeAvailable), freed, deleted), volume.DropFinalizer},
		"a promise that a member has: root_pv's":                  {promise(in(corev1.VolumeReleased), placed), volume.None},
		"a promise that a member has, abandoned":                  {promise(in(corev1.VolumeReleased), placed, abandoned), volume.DeleteHost},
		"the same, being deleted":                                 {promise(in(corev1.VolumeReleased), placed, abandoned, deleted), volume.ReleaseHost},
		"a promise that a member has, its claim lives, abandoned": {promise(in(corev1.VolumeBound), placed, abandoned), volume.LetGo},
		"fulfilled, until it is unused, abandoned":                {scratch(in(corev1.VolumeBound), abandoned), volume.LetGo},
		"the same, its member was left":                           {scratch(in(corev1.VolumeBound), abandoned, letGone), volume.LetGo},
		"the same, its claim is gone":                             {scratch(in(corev1.VolumeReleased), abandoned), volume.DeleteHost},
		"fulfilled, until it is unused":                           {scratch(in(corev1.VolumeBound)), volume.None},
		"let go of: its claim is to follow":                       {promise(in(corev1.VolumeBound), takenFrom), volume.Unplace},
		"let go of, and a member has it again":                    {promise(in(corev1.VolumeBound), takenFrom, placed), volume.None},
		"let go of, its claim is gone":                            {promise(in(corev1.VolumeReleased), takenFrom), volume.DropPromise},
		"a promise whose record is not whole": {promise(in(corev1.VolumeReleased), func(pv *corev1.PersistentVolume) {
			pv.Annotations[v1alpha1.AnnotationVolume] = "member/pvc-1"
		}), volume.None},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stepFor(t, tc.pv, nil); got != tc.want {
				t.Errorf("step is %q, want %q", got, tc.want)
			}
		})
	}
}
