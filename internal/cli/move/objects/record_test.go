package objects

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestManifest(t *testing.T) {
	owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "set-1"}}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data", UID: "claim-1", ResourceVersion: "7", Finalizers: []string{"kubernetes.io/pvc-protection"},
			Labels: map[string]string{"app": "db", v1alpha1.LabelMove: "abcde"},
			Annotations: map[string]string{
				"note": "mine", v1alpha1.AnnotationPlacedIn: "one", v1alpha1.AnnotationMoveRun: "abcde", "pv.kubernetes.io/bind-completed": "yes",
				"volume.kubernetes.io/selected-node": "kosmos-one", "volume.beta.kubernetes.io/storage-provisioner": "csi.xylem.io",
				"volume.beta.kubernetes.io/storage-class": "fast",
			},
			OwnerReferences: owner,
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "pv-1", StorageClassName: ptr.To("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			DataSource: &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "other"},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	want := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data", Labels: map[string]string{"app": "db"},
			Annotations: map[string]string{"note": "mine", "volume.beta.kubernetes.io/storage-class": "fast"}, OwnerReferences: owner,
		},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	if diff := cmp.Diff(want, ClaimManifest(claim)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNamesAreValid(t *testing.T) {
	for _, claim := range []string{"data", strings.Repeat("a", 253), strings.Repeat("a", 199) + ".b" + strings.Repeat("c", 50)} {
		for _, name := range []string{ConfigMapName(claim), NameForMove(claim, "abcde")} {
			if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
				t.Errorf("%q is not a valid name: %v", name, wrong)
			}
		}
	}
	a, b := strings.Repeat("a", 250)+"1", strings.Repeat("a", 250)+"2"
	if ConfigMapName(a) == ConfigMapName(b) {
		t.Error("two claims share a record")
	}
}

func TestCopyIsNotSmaller(t *testing.T) {
	for name, tc := range map[string]struct{ requested, has, want string }{
		"the volume is larger than the request":  {"1Gi", "2Gi", "2Gi"},
		"the volume is smaller than the request": {"3Gi", "2Gi", "3Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Record{Claim: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{Resources: storageOf(tc.requested)}}}
			old := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{Capacity: storageOf(tc.has).Requests}}
			if diff := cmp.Diff(storageOf(tc.want), r.CopyClaim(old).Spec.Resources); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func storageOf(size string) corev1.VolumeResourceRequirements {
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}
}

func TestRestoreSetsThePolicyBeforeTheMove(t *testing.T) {
	r := &Record{ID: "this"}
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain} {
		t.Run(string(policy), func(t *testing.T) {
			before := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy}}
			pv := before.DeepCopy()
			for range 2 { // a move that is killed sets the policy again
				r.Retain(pv)
				if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
					t.Fatalf("policy %s, want Retain", pv.Spec.PersistentVolumeReclaimPolicy)
				}
			}
			if RestorePolicy(pv); r.Retains(pv) {
				t.Fatal("the move still retains the volume")
			}
			if diff := cmp.Diff(before, pv); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
		})
	}
}

// An admin may keep a disk that an earlier move left, and use it for another claim.
func TestPolicyOfAnEarlierMoveIsForgotten(t *testing.T) {
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete}}
	earlier, r := &Record{ID: "earlier"}, &Record{ID: "this"}
	if earlier.Retain(pv); r.Retains(pv) {
		t.Fatal("the move regards the policy of an earlier move as its own")
	}
	r.Retain(pv)
	if RestorePolicy(pv); pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("policy %s, want Retain, as before the move", pv.Spec.PersistentVolumeReclaimPolicy)
	}
}

// A restore is known for as long as the registration exists, even if an admin removes the annotation
// that confirmed it.
func TestPlaceNamesTheLastRestore(t *testing.T) {
	at := metav1.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	registration := func(restored *metav1.Time, annotations map[string]string) *v1alpha1.ClusterRegistration {
		return &v1alpha1.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: "cluster38", UID: "uid", Annotations: annotations},
			Status:     v1alpha1.ClusterRegistrationStatus{ClusterID: "id", LastRestored: restored},
		}
	}
	confirmed := map[string]string{v1alpha1.AnnotationConfirmRestore: "host-3-member-7"}
	never, restored := PlaceOf(registration(nil, nil)), PlaceOf(registration(&at, confirmed))
	if never == restored {
		t.Error("a restore does not change the place")
	}
	if got := PlaceOf(registration(&at, nil)); got != restored {
		t.Errorf("without the annotation, the place is %v, want %v", got, restored)
	}
	again := metav1.NewTime(at.Add(time.Second))
	if got := PlaceOf(registration(&again, confirmed)); got == restored {
		t.Error("another restore does not change the place")
	}
}

// TestWellFormed checks that a record cannot put text of a tenant's choice into the command's output.
func TestWellFormed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Record)
		want   bool
	}{
		"a record":                {func(*Record) {}, true},
		"a later version's step":  {func(r *Record) { r.Phase = "Later" }, true},
		"no copy yet":             {func(r *Record) { r.Copy, r.New = "", Disk{} }, true},
		"no claim":                {func(r *Record) { r.Claim = nil }, false},
		"a sentence as the step":  {func(r *Record) { r.Phase = "Copying\nTo do: run this" }, false},
		"a command as the member": {func(r *Record) { r.To.Registration = "b && curl x | sh" }, false},
		"a command as the origin": {func(r *Record) { r.From.Registration = "`id`" }, false},
		"a sentence as the copy":  {func(r *Record) { r.Copy = "c. Everything is fine" }, false},
		"a sentence as a volume":  {func(r *Record) { r.Old.Name = "v\nw" }, false},
		"an escape as the copy's": {func(r *Record) { r.New.Name = "\x1b[31m" }, false},
		"a cluster ID with text":  {func(r *Record) { r.To.ClusterID = "id. Run this" }, false},
	} {
		r := &Record{
			ID: "abcde", Phase: Copying, Claim: &corev1.PersistentVolumeClaim{}, Copy: "data-move-abcde", Old: Disk{Name: "pvc-1"}, New: Disk{Name: "pvc-2"},
			From: Place{Registration: "a", ClusterID: "id-a"}, To: Place{Registration: "b.example", ClusterID: "0f1c9e7e-3b1f"},
		}
		tc.change(r)
		if got := r.wellFormed(); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

func TestFits(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolumeClaimSpec)
		want   bool
	}{
		"as it was":           {func(*corev1.PersistentVolumeClaimSpec) {}, true},
		"another class":       {func(spec *corev1.PersistentVolumeClaimSpec) { spec.StorageClassName = ptr.To("premium") }, false},
		"another volume mode": {func(spec *corev1.PersistentVolumeClaimSpec) { spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }, false},
		"another access mode": {func(spec *corev1.PersistentVolumeClaimSpec) {
			spec.AccessModes = append(spec.AccessModes, corev1.ReadWriteMany)
		}, false},
	} {
		modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		r := &Record{Claim: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast"), AccessModes: modes}}}
		tc.change(&r.Claim.Spec)
		if got := r.FitsVolume(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{StorageClassName: "fast", AccessModes: modes}}); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
