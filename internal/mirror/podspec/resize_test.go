package podspec

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

// resizablePod returns a root whose containers have requests.
func resizablePod() *corev1.Pod {
	requests := func() corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: mirrortest.ResourceAmounts("cpu", "1", "memory", "1Gi")}
	}
	return mirrortest.NewRootPod(corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "sidecar", Resources: requests()}},
		Containers:     []corev1.Container{{Name: "main", Resources: requests()}, {Name: "other", Resources: requests()}},
	})
}

// withAmount changes an amount of a container's requests.
func withAmount(container int, name corev1.ResourceName, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[container].Resources.Requests[name] = resource.MustParse(amount)
	}
}

// recordedByEarlierVersion replaces the push record of a leaf by one with a digest of all resources.
func recordedByEarlierVersion(leaf *corev1.Pod) {
	record := pushRecordOf(leaf)
	record.Amounts, record.ResourcesDigest = nil, resourcesDigestOf(&leaf.Spec)
	setPushRecord(leaf, record)
}

// A resize pushes what the root changed and the leaf lacks. What the member's admission or admin changed stays, unless
// the root changes the same amount.
func TestResize(t *testing.T) {
	all := func(changes ...func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, change := range changes {
				change(p)
			}
		}
	}
	none := all()
	initialized := func(amount string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(amount)
		}
	}
	whole := func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Limits: mirrortest.ResourceAmounts("cpu", "4")}
	}
	limited := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = mirrortest.ResourceAmounts("memory", "2Gi")
	}
	injected := func(p *corev1.Pod) {
		p.Spec.Containers = slices.Insert(p.Spec.Containers, 0, corev1.Container{Name: "proxy", Resources: corev1.ResourceRequirements{Requests: mirrortest.ResourceAmounts("cpu", "9")}})
	}
	for name, tc := range map[string]struct {
		pushed, root, leaf func(*corev1.Pod) // changes of the leaf at the push, of the root afterwards, and of the leaf then
		want               map[string]string
	}{
		"nothing changed":                                               {none, none, none, nil},
		"a container was resized":                                       {none, withAmount(0, "cpu", "2"), none, map[string]string{"main/requests/cpu": "2"}},
		"a container was resized down":                                  {none, withAmount(1, "memory", "512Mi"), none, map[string]string{"other/requests/memory": "512Mi"}},
		"a sidecar was resized":                                         {none, initialized("2"), none, map[string]string{"sidecar/requests/cpu": "2"}},
		"the Pod was resized":                                           {none, whole, none, map[string]string{"/limits/cpu": "4"}},
		"a limit was added":                                             {none, limited, none, map[string]string{"main/limits/memory": "2Gi"}},
		"the amount is written differently":                             {none, withAmount(0, "cpu", "1000m"), none, nil},
		"an amount that a resize cannot change":                         {none, withAmount(0, "example.com/gpu", "1"), none, nil},
		"the member's admin resized the leaf as well":                   {none, withAmount(0, "cpu", "2"), withAmount(0, "cpu", "2"), nil},
		"the member's admin resized only the leaf":                      {none, none, withAmount(0, "cpu", "2"), nil},
		"the member's admission changed another amount":                 {all(withAmount(0, "memory", "2Gi"), withAmount(1, "cpu", "3")), withAmount(0, "cpu", "2"), none, map[string]string{"main/requests/cpu": "2"}},
		"the member's admission injected a container":                   {injected, withAmount(0, "cpu", "2"), none, map[string]string{"main/requests/cpu": "2"}},
		"the member's admission had set the amount that the root takes": {withAmount(0, "cpu", "2"), withAmount(0, "cpu", "2"), none, nil},
		"an earlier version pushed the Pod":                             {recordedByEarlierVersion, none, withAmount(1, "cpu", "3"), nil},
		"an earlier version pushed the Pod, which was resized":          {recordedByEarlierVersion, withAmount(0, "cpu", "2"), none, map[string]string{"main/requests/cpu": "2"}},
		"the record is lost":                                            {func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationPushed] = "{" }, withAmount(0, "cpu", "2"), none, nil},
		"the record says nothing about resources":                       {func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationPushed] = "{}" }, none, withAmount(0, "cpu", "2"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := resizablePod()
			leaf, err := TranslatePod(root, mirrortest.Member)
			if err != nil {
				t.Fatal(err)
			}
			tc.pushed(leaf)
			tc.root(root)
			tc.leaf(leaf)
			drift := PodDriftOf(root, leaf, mirrortest.Member)
			if diff := cmp.Diff(tc.want, drift.Amounts.asTexts()); diff != "" {
				t.Errorf("amounts (-want +got):\n%s", diff)
			}
			if tc.want == nil {
				return
			}
			updated := ApplyPodDrift(leaf, drift)
			if again := PodDriftOf(root, updated, mirrortest.Member); !again.Resizes() || again.NeedsUpdate() {
				t.Errorf("the update of the leaf, without the resize, leaves the drift %+v", again)
			}
			resized, outOfRange := ResizePod(leaf, drift)
			if len(outOfRange) > 0 {
				t.Errorf("out of range: %v", outOfRange)
			}
			if changed := AmountsNotResized(resized, drift); changed != nil {
				t.Errorf("changed amounts: %v", changed)
			}
			// The manager may end before it records the resize.
			if again := PodDriftOf(root, resized, mirrortest.Member); again.Resizes() {
				t.Errorf("the resized leaf drifts by %v", again.Amounts)
			}
			if again := PodDriftOf(root, RecordResize(root, resized), mirrortest.Member); again.Resizes() || len(again.Annotations) > 0 && pushRecordOf(leaf).Labels != nil {
				t.Errorf("the recorded leaf drifts by %+v", again)
			}
			// The member's admission may undo a resize, which must not cause another one (I5).
			if again := PodDriftOf(root, RecordResize(root, leaf), mirrortest.Member); again.Resizes() {
				t.Errorf("a leaf whose resize the member undid drifts by %v", again.Amounts)
			}
		})
	}
}

// An unchanged record of an earlier version stays, so that an upgrade of Xylem does not write all leaves.
func TestEarlierRecordStays(t *testing.T) {
	root := resizablePod()
	leaf, err := TranslatePod(root, mirrortest.Member)
	if err != nil {
		t.Fatal(err)
	}
	recordedByEarlierVersion(leaf)
	withAmount(0, "memory", "2Gi")(leaf)
	if drift := PodDriftOf(root, leaf, mirrortest.Member); !drift.IsEmpty() {
		t.Errorf("the leaf drifts: %+v", drift)
	}
}

func TestAmountsNotResized(t *testing.T) {
	root := resizablePod()
	leaf, err := TranslatePod(root, mirrortest.Member)
	if err != nil {
		t.Fatal(err)
	}
	withAmount(0, "cpu", "4")(root)
	root.Spec.Resources = &corev1.ResourceRequirements{Requests: mirrortest.ResourceAmounts("cpu", "8")}
	drift := PodDriftOf(root, leaf, mirrortest.Member)
	withAmount(0, "cpu", "2")(leaf) // by the member's admission
	want := []string{`container "main": requests.cpu 2 instead of 4`, "the Pod's requests.cpu 0 instead of 8"}
	if diff := cmp.Diff(want, AmountsNotResized(leaf, drift)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A member's response with such a quantity would close the link.
func TestResizeOutOfRange(t *testing.T) {
	root := resizablePod()
	leaf, err := TranslatePod(root, mirrortest.Member)
	if err != nil {
		t.Fatal(err)
	}
	withAmount(0, "cpu", "1e102")(root)
	_, outOfRange := ResizePod(leaf, PodDriftOf(root, leaf, mirrortest.Member))
	if want := fields.QuantitiesOutOfRange(&root.Spec, "spec"); len(want) != 1 || !slices.Equal(outOfRange, want) {
		t.Errorf("out of range: %q, want %q", outOfRange, want)
	}
}
