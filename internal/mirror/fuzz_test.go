package mirror

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// seeds steer the filler through plain `go test`: everything set, nothing set,
// and many mixtures.
func seeds(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{1}, 1<<12))
	random := rand.NewChaCha8([32]byte{})
	for range 200 {
		data := make([]byte, 1<<12)
		_, _ = random.Read(data) // never fails
		f.Add(data)
	}
}

func FuzzTranslatePod(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		root := fuzzedPod(data)
		// Nearly every random Pod has something that is refused.
		shaped(refusedAsDropped(podTable).compile(), &root.Spec, "spec")
		checkPod(t, root)
	})
}

// FuzzRefusePod leaves in what is refused.
func FuzzRefusePod(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) { checkPod(t, fuzzedPod(data)) })
}

// fuzzedPod is a Pod that keeps to what the API enforces and translation relies
// on: names of objects, and one source for each volume.
func fuzzedPod(data []byte) *corev1.Pod {
	pod := fuzzed[corev1.Pod](data)
	pod.Namespace, pod.Name = "shop", "web"
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		keepOne(&v.VolumeSource, len(data)+i)
		if v.Projected != nil {
			for j := range v.Projected.Sources {
				keepOne(&v.Projected.Sources[j], i+j)
			}
		}
	}
	return pod
}

// keepOne keeps the n-th of the pointers that are set in a union, counted around.
func keepOne[T any](union *T, n int) {
	v := reflect.ValueOf(union).Elem()
	var set []reflect.Value
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			set = append(set, v.Field(i))
		}
	}
	for i, f := range set {
		if i != n%len(set) {
			f.SetZero()
		}
	}
}

func refusedAsDropped(t Table) Table {
	t.Fields = append([]Field{}, t.Fields...)
	for i := range t.Fields {
		if t.Fields[i].Decision == Refuse {
			t.Fields[i].Decision = Drop
		}
	}
	return t
}

func checkPod(t *testing.T, root *corev1.Pod) {
	t.Helper()
	before := root.DeepCopy()
	leaf, err := TranslatePod(root, member)
	if diff := cmp.Diff(before, root); diff != "" {
		t.Fatalf("the root was changed:\n%s", diff)
	}
	if err != nil {
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Reason == "" || refusal.Message == "" || leaf != nil {
			t.Fatalf("neither a leaf nor a refusal: %v, %#v", leaf, err)
		}
		return
	}
	checkLeaf(t, root, leaf)

	shown := RootPodStatus(root, leaf, member)
	root.Status = shown
	if again := RootPodStatus(root, leaf, member); !PodStatusCurrent(root, again) {
		t.Errorf("the status does not settle (-shown +again):\n%s", cmp.Diff(shown, again))
	}
}

func checkLeaf(t *testing.T, root, leaf *corev1.Pod) {
	t.Helper()
	twice := leaf.DeepCopy()
	twice.UID = root.UID // the stamp names the object that it was made for
	again, err := TranslatePod(twice, member)
	if err != nil {
		t.Fatalf("the leaf is refused: %v", err)
	}
	if diff := cmp.Diff(leaf, again); diff != "" {
		t.Errorf("translating twice changes something (-once +twice):\n%s", diff)
	}
	if diff := cmp.Diff(ClaimNames(root), ClaimNames(leaf)); diff != "" {
		t.Errorf("claims (-root +leaf):\n%s", diff)
	}
	if diff := cmp.Diff(References(root), References(leaf)); diff != "" {
		t.Errorf("references (-root +leaf):\n%s", diff)
	}
	if origin, ok := OriginIn(hostID, leaf); root.UID != "" && (!ok || origin != OriginFor(hostID, root)) {
		t.Errorf("origin: %v, %v", origin, ok)
	}
	if drift := LeafPodDrift(root, leaf, member); !drift.Empty() {
		t.Errorf("a new leaf drifts: %+v", drift)
	}
	for _, c := range leaf.Spec.TopologySpreadConstraints {
		if v1alpha1.Reserved(c.TopologyKey) || len(c.MatchLabelKeys) > 0 {
			t.Errorf("a constraint that the member cannot answer: %+v", c)
		}
	}
	for _, toleration := range leaf.Spec.Tolerations {
		if toleration.Key == v1alpha1.DefaultTaintKey || v1alpha1.Reserved(toleration.Key) {
			t.Errorf("a toleration of the virtual node: %+v", toleration)
		}
	}
}

func FuzzTranslateClaim(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		root := fuzzed[corev1.PersistentVolumeClaim](data)
		if len(data)%2 == 0 {
			root.Spec.DataSource, root.Spec.DataSourceRef = nil, nil
		}
		before := root.DeepCopy()
		leaf, err := TranslateClaim(root, ptr("gp3"), member)
		if diff := cmp.Diff(before, root); diff != "" {
			t.Fatalf("the root was changed:\n%s", diff)
		}
		if refused := root.Spec.DataSource != nil || root.Spec.DataSourceRef != nil; refused != (err != nil) {
			t.Fatalf("refused: %v, error: %v", refused, err)
		} else if refused {
			return
		}
		twice := leaf.DeepCopy()
		twice.UID = root.UID
		again, err := TranslateClaim(twice, leaf.Spec.StorageClassName, member)
		if err != nil {
			t.Fatalf("the leaf is refused: %v", err)
		}
		if diff := cmp.Diff(leaf, again); diff != "" {
			t.Errorf("translating twice changes something (-once +twice):\n%s", diff)
		}
		if leaf.Spec.VolumeName != "" {
			t.Errorf("the leaf asks for volume %s", leaf.Spec.VolumeName)
		}
		if _, changes := Growth(root, leaf); changes {
			t.Error("a new leaf has to grow")
		}

		root.Status.Phase, leaf.Status = corev1.ClaimBound, root.Status
		leaf.Status.Phase = corev1.ClaimBound
		want := RootClaimStatus(root, leaf)
		if root.Status = *want.DeepCopy(); !ClaimStatusCurrent(root, want) {
			t.Errorf("the status does not settle: %+v", want)
		}
	})
}
