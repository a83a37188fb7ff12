package mirror_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/mirror/refs"
)

// seeds adds inputs, so that plain `go test` runs with all fields set, none set, and many mixtures.
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
		// Nearly every random Pod sets a refused field, so drop such fields.
		fields.ApplyDecisions(refusedAsDropped(podspec.PodFieldTable).CompileDecisions(), &root.Spec, "spec")
		checkPod(t, root)
	})
}

// FuzzRefusePod is like FuzzTranslatePod, but keeps the fields that Xylem refuses.
func FuzzRefusePod(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) { checkPod(t, fuzzedPod(data)) })
}

// fuzzedPod returns a Pod that satisfies what the API enforces and translation relies on: valid
// object names, and one source for each volume.
func fuzzedPod(data []byte) *corev1.Pod {
	pod := mirrortest.FuzzedObject[corev1.Pod](data)
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

// keepOne keeps only one of a union's set pointers, and clears the others. n selects the pointer.
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

func refusedAsDropped(t fields.Table) fields.Table {
	t.Fields = append([]fields.Field{}, t.Fields...)
	for i := range t.Fields {
		if t.Fields[i].Decision == fields.Refuse {
			t.Fields[i].Decision = fields.Drop
		}
	}
	return t
}

func checkPod(t *testing.T, root *corev1.Pod) {
	t.Helper()
	before := root.DeepCopy()
	leaf, err := podspec.TranslatePod(root, mirrortest.Member)
	if diff := cmp.Diff(before, root); diff != "" {
		t.Fatalf("the root was changed:\n%s", diff)
	}
	if err != nil {
		var refusal *mirror.Refusal
		if !errors.As(err, &refusal) || refusal.Reason == "" || refusal.Message == "" || leaf != nil {
			t.Fatalf("got neither a leaf nor a refusal: %v, %#v", leaf, err)
		}
		return
	}
	checkLeaf(t, root, leaf)

	shown := podstatus.TranslatePodStatus(root, leaf, mirrortest.Member)
	root.Status = shown
	if again := podstatus.TranslatePodStatus(root, leaf, mirrortest.Member); !podstatus.IsPodStatusCurrent(root, again) {
		t.Errorf("the second translation differs from the first (-shown +again):\n%s", cmp.Diff(shown, again))
	}
}

func checkLeaf(t *testing.T, root, leaf *corev1.Pod) {
	t.Helper()
	twice := leaf.DeepCopy()
	twice.UID = root.UID // the stamp has the UID of the translated object
	again, err := podspec.TranslatePod(twice, mirrortest.Member)
	if err != nil {
		t.Fatalf("the leaf is refused: %v", err)
	}
	if diff := cmp.Diff(leaf, again); diff != "" {
		t.Errorf("translating twice changes something (-once +twice):\n%s", diff)
	}
	if diff := cmp.Diff(podspec.ClaimNamesOfPod(root), podspec.ClaimNamesOfPod(leaf)); diff != "" {
		t.Errorf("the leaf uses other claims (-root +leaf):\n%s", diff)
	}
	debugged := leaf
	for _, name := range podspec.MissingDebugContainers(root, leaf) {
		if debugged, err = podspec.AddDebugContainer(root, debugged, name, func(*corev1.Pod) {}); err != nil {
			root = root.DeepCopy()
			root.Spec.EphemeralContainers, debugged = nil, leaf
			break
		}
	}
	if diff := cmp.Diff(refs.ReferencesOfPod(root), refs.ReferencesOfPod(debugged)); diff != "" {
		t.Errorf("the leaf refers to other objects (-root +leaf):\n%s", diff)
	}
	if lacks := podspec.MissingDebugContainers(root, debugged); len(lacks) > 0 {
		t.Errorf("ephemeral containers are still missing: %v", lacks)
	}
	if origin, ok := mirror.LeafOriginFromHost(mirrortest.HostID, leaf); root.UID != "" && (!ok || origin != mirror.OriginForRoot(mirrortest.HostID, root)) {
		t.Errorf("origin is %v, %v; want the root's", origin, ok)
	}
	if drift := podspec.PodDriftOf(root, leaf, mirrortest.Member); !drift.IsEmpty() {
		t.Errorf("a new leaf drifts: %+v", drift)
	}
	for _, c := range leaf.Spec.TopologySpreadConstraints {
		if v1alpha1.Reserved(c.TopologyKey) || len(c.MatchLabelKeys) > 0 {
			t.Errorf("the leaf has a constraint that the member cannot evaluate: %+v", c)
		}
	}
	for _, toleration := range leaf.Spec.Tolerations {
		if toleration.Key == v1alpha1.DefaultTaintKey || v1alpha1.Reserved(toleration.Key) {
			t.Errorf("the leaf has a toleration for the virtual node: %+v", toleration)
		}
	}
}

func FuzzTranslateClaim(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		root := mirrortest.FuzzedObject[corev1.PersistentVolumeClaim](data)
		if len(data)%2 == 0 {
			root.Spec.DataSource, root.Spec.DataSourceRef = nil, nil
		}
		before := root.DeepCopy()
		leaf, err := pvc.TranslateClaim(root, mirrortest.PointerTo("gp3"), mirrortest.Member)
		if diff := cmp.Diff(before, root); diff != "" {
			t.Fatalf("the root was changed:\n%s", diff)
		}
		if refused := root.Spec.DataSourceRef != nil && root.Spec.DataSourceRef.Namespace != nil; refused != (err != nil) {
			t.Fatalf("want a refusal: %v, got error %v", refused, err)
		} else if refused {
			return
		}
		if !mirror.SameDataSource(root, leaf) {
			t.Errorf("the leaf claim has another data source")
		}
		twice := leaf.DeepCopy()
		twice.UID = root.UID
		again, err := pvc.TranslateClaim(twice, leaf.Spec.StorageClassName, mirrortest.Member)
		if err != nil {
			t.Fatalf("the leaf is refused: %v", err)
		}
		if diff := cmp.Diff(leaf, again); diff != "" {
			t.Errorf("translating twice changes something (-once +twice):\n%s", diff)
		}
		if leaf.Spec.VolumeName != "" {
			t.Errorf("the leaf requests volume %s, want none", leaf.Spec.VolumeName)
		}
		if _, changes := pvc.LeafStorageRequest(root, leaf); changes {
			t.Error("a new leaf already needs to be expanded")
		}

		root.Status.Phase, leaf.Status = corev1.ClaimBound, root.Status
		leaf.Status.Phase = corev1.ClaimBound
		want := pvc.TranslateClaimStatus(root, leaf)
		if root.Status = *want.DeepCopy(); !pvc.IsClaimStatusCurrent(root, want) {
			t.Errorf("the second translation differs from the first: %+v", want)
		}
	})
}
