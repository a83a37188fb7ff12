package volume

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

func volumeWith(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"l": name}, Annotations: map[string]string{"a": name}, Finalizers: []string{name}},
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete},
	}
}

// A changed copy shares nothing with the original or with later copies.
func TestChanged(t *testing.T) {
	mark := func(pv *corev1.PersistentVolume) {
		pv.Labels["new"], pv.Annotations["new"], pv.Finalizers[0] = pv.Name, pv.Name, "new"
	}
	first, second := volumeWith("first"), volumeWith("second")
	got := changedVolume(first, mark)
	changedVolume(second, mark)
	want := volumeWith("first")
	mark(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(volumeWith("first"), first); diff != "" {
		t.Errorf("the original (-want +got):\n%s", diff)
	}
	empty := &corev1.PersistentVolume{}
	if pv := changedVolume(empty, func(pv *corev1.PersistentVolume) {
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, "a", "b")
	}); pv == nil || len(pv.Labels) > 0 || len(pv.Annotations) != 1 || len(pv.Finalizers) > 0 {
		t.Errorf("the copy of an empty volume is %+v", pv)
	}
}

// After a start, each volume is compared several times, usually without a difference.
func TestChangedAllocations(t *testing.T) {
	pv := volumeWith("pv")
	const most = 4
	if n := testing.AllocsPerRun(100, func() {
		if changedVolume(pv, func(pv *corev1.PersistentVolume) { pv.Annotations["a"] = "pv" }) != nil {
			t.Fatal("the volume differs")
		}
	}); n > most {
		t.Errorf("a comparison makes %.0f allocations, want at most %d", n, most)
	}
}

// A leaf claim whose node is outside the group that recovery selected is withdrawn, as if another member were selected.
func TestMemberSelectedForGroup(t *testing.T) {
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{route.AnnSelectedNode: "b.kosmos-x"}}}
	for elsewhere, want := range map[bool]bool{false: true, true: false} {
		s := &Observed{Root: root, Member: mirror.Member{NodeName: "kosmos-x"}, Placement: &Placement{LeafInOtherGroup: elsewhere}}
		if got := s.MemberSelected(); got != want {
			t.Errorf("the leaf claim is in another group: %t, selected %t, want %t", elsewhere, got, want)
		}
	}
}
