package hostvolume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

func volume(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "leaf"}}
	leaf.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk", VolumeHandle: "1"}
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "root"}}
	pv := mirror.HostVolume(leaf, root, corev1.PersistentVolumeReclaimDelete, mirror.Member{ClusterID: "member", Registration: "one"})
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
	pv := mirror.PromiseFor(claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}})
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
	pv := mirror.PromiseFor(claim, &storagev1.StorageClass{Parameters: map[string]string{v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused}})
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "leaf"}}
	pv = mirror.Fulfil(mirror.WithMember(pv, m, nil), leaf, corev1.PersistentVolumeReclaimDelete, m)
	for _, f := range change {
		f(pv)
	}
	return pv
}

func takenFrom(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationAbandon] = "member" }

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		want decision
	}{
		"gone":                         {nil, nothing},
		"not abandoned":                {volume(func(pv *corev1.PersistentVolume) { delete(pv.Annotations, v1alpha1.AnnotationAbandon) }), nothing},
		"abandoned: false":             {volume(func(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationAbandon] = "false" }), nothing},
		"somebody else's volume":       {volume(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "disk" }), nothing},
		"bound: the claim keeps it":    {volume(in(corev1.VolumeBound)), release},
		"bound, let go of":             {volume(in(corev1.VolumeBound), letGone), nothing},
		"released: nobody needs it":    {volume(in(corev1.VolumeReleased)), remove},
		"free: no claim is to have it": {volume(in(corev1.VolumeAvailable), freed), remove},
		"reclaiming it failed":         {volume(in(corev1.VolumeFailed)), remove},
		"released, let go of before":   {volume(in(corev1.VolumeReleased), letGone), remove},
		"released, being deleted":      {volume(in(corev1.VolumeReleased), deleted), release},
		"bound, being deleted":         {volume(in(corev1.VolumeBound), deleted), release},
		"let go of, others hold it":    {volume(in(corev1.VolumeReleased), deleted, letGone), nothing},
		"available":                    {volume(in(corev1.VolumeAvailable)), release},

		"a promise: its claim is gone":                            {promise(in(corev1.VolumeReleased)), vanish},
		"a promise: its claim is gone, reclaiming it failed":      {promise(in(corev1.VolumeFailed)), vanish},
		"a promise: its claim is gone, its class retains":         {promise(in(corev1.VolumeReleased), retained), vanish},
		"a promise: its claim is gone, being deleted":             {promise(in(corev1.VolumeReleased), deleted), vanish},
		"a promise: its claim is gone, let go of":                 {promise(in(corev1.VolumeReleased), deleted, letGone), nothing},
		"a promise: its claim lives":                              {promise(in(corev1.VolumeBound)), nothing},
		"a promise: its claim lives, being deleted":               {promise(in(corev1.VolumeBound), deleted), nothing},
		"a promise: not bound yet":                                {promise(in(corev1.VolumeAvailable)), nothing},
		"a promise: freed by an admin":                            {promise(in(corev1.VolumeAvailable), freed), nothing},
		"a promise: freed by an admin, being deleted":             {promise(in(corev1.VolumeAvailable), freed, deleted), forget},
		"a promise that a member has: root_pv's":                  {promise(in(corev1.VolumeReleased), placed), nothing},
		"a promise that a member has, abandoned":                  {promise(in(corev1.VolumeReleased), placed, abandoned), remove},
		"the same, being deleted":                                 {promise(in(corev1.VolumeReleased), placed, abandoned, deleted), release},
		"a promise that a member has, its claim lives, abandoned": {promise(in(corev1.VolumeBound), placed, abandoned), letGo},
		"fulfilled, until it is unused, abandoned":                {scratch(in(corev1.VolumeBound), abandoned), letGo},
		"the same, its member was left":                           {scratch(in(corev1.VolumeBound), abandoned, letGone), letGo},
		"the same, its claim is gone":                             {scratch(in(corev1.VolumeReleased), abandoned), remove},
		"fulfilled, until it is unused":                           {scratch(in(corev1.VolumeBound)), nothing},
		"let go of: its claim is to follow":                       {promise(in(corev1.VolumeBound), takenFrom), unplace},
		"let go of, and a member has it again":                    {promise(in(corev1.VolumeBound), takenFrom, placed), nothing},
		"let go of, its claim is gone":                            {promise(in(corev1.VolumeReleased), takenFrom), vanish},
		"a promise whose record is not whole": {promise(in(corev1.VolumeReleased), func(pv *corev1.PersistentVolume) {
			pv.Annotations[v1alpha1.AnnotationVolume] = "member/pvc-1"
		}), nothing},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.pv); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}
