package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func TestLeafPodDrift(t *testing.T) {
	exists := func(key string) corev1.Toleration { return corev1.Toleration{Key: key, Operator: "Exists"} }
	cases := map[string]struct {
		root func(*corev1.Pod)
		leaf func(*corev1.Pod)
		want PodDrift
		// record reports whether Xylem must write the push record.
		record bool
	}{
		"no changes": {},
		"changes by the member's admission": {
			leaf: func(p *corev1.Pod) {
				p.Labels["sidecar"] = "injected"
				p.Labels["app"] = "renamed"
				p.Annotations["member/note"] = "set"
				p.Spec.Containers[0].Image = "mirror.example/web:1"
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:1"})
				p.Spec.Tolerations = append(p.Spec.Tolerations, exists("node.kubernetes.io/not-ready"))
				p.Spec.ActiveDeadlineSeconds = mirrortest.PointerTo(int64(50))
				p.Spec.ServiceAccountName = "default"
			},
		},
		"labels added, changed and removed": {
			root: func(p *corev1.Pod) {
				p.Labels = map[string]string{"app": "shop", "new": ""}
			},
			want:   PodDrift{MetaDrift: fields.MetaDrift{Labels: map[string]*string{"app": mirrortest.PointerTo("shop"), "new": mirrortest.PointerTo(""), "tier": nil}}},
			record: true,
		},
		"annotations added, changed and removed": {
			root: func(p *corev1.Pod) {
				p.Annotations = map[string]string{"note": "2", "new": "n"}
			},
			want:   PodDrift{MetaDrift: fields.MetaDrift{Annotations: map[string]*string{"note": mirrortest.PointerTo("2"), "new": mirrortest.PointerTo("n"), "old": nil}}},
			record: true,
		},
		"a label, and a resize": {
			root: func(p *corev1.Pod) {
				p.Labels["app"] = "shop"
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
			},
			want: PodDrift{
				MetaDrift: fields.MetaDrift{Labels: map[string]*string{"app": mirrortest.PointerTo("shop")}},
				Amounts:   resizableAmounts{"web/limits/cpu": resource.MustParse("2")},
			},
			record: true,
		},
		"a key that both the root and the leaf removed": {
			root:   func(p *corev1.Pod) { delete(p.Labels, "tier") },
			leaf:   func(p *corev1.Pod) { delete(p.Labels, "tier") },
			record: true,
		},
		"a value that the leaf already has": {
			root:   func(p *corev1.Pod) { p.Labels["app"] = "shop" },
			leaf:   func(p *corev1.Pod) { p.Labels["app"] = "shop" },
			record: true,
		},
		"a label does not affect an image that the member rewrote": {
			root:   func(p *corev1.Pod) { p.Labels["app"] = "shop" },
			leaf:   func(p *corev1.Pod) { p.Spec.Containers[0].Image = "mirror.example/web:1" },
			want:   PodDrift{MetaDrift: fields.MetaDrift{Labels: map[string]*string{"app": mirrortest.PointerTo("shop")}}},
			record: true,
		},
		"a reserved key on the root": {
			root: func(p *corev1.Pod) { p.Labels["xylem.io/host"] = "forged" },
		},
		"changed images": {
			root: func(p *corev1.Pod) {
				p.Spec.Containers[0].Image = "web:2"
				p.Spec.InitContainers[0].Image = "init:2"
			},
			want:   PodDrift{Images: map[string]string{"web": "web:2"}, InitImages: map[string]string{"init": "init:2"}},
			record: true,
		},
		"a new active deadline": {
			root:   func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = mirrortest.PointerTo(int64(10)) },
			want:   PodDrift{ActiveDeadlineSeconds: mirrortest.PointerTo(int64(10))},
			record: true,
		},
		"more tolerations, in addition to the member's": {
			root: func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, exists("b")) },
			leaf: func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, exists("member")) },
			want: PodDrift{Tolerations: []corev1.Toleration{exists("a"), exists("member"), exists("b")}},

			record: true,
		},
		"a toleration that the member removed": {
			leaf: func(p *corev1.Pod) { p.Spec.Tolerations = nil },
		},
		"a toleration for the virtual node": {
			root: func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, exists("kosmos.io/node")) },
		},
		"a record that does not parse": {
			leaf:   func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationPushed] = "{" },
			record: true,
		},
		"a forged record that contains the stamp's keys": {
			leaf: func(p *corev1.Pod) {
				p.Annotations[v1alpha1.AnnotationPushed] = `{"labels":{"xylem.io/host":"1","app.kubernetes.io/managed-by":"2"},"annotations":{"xylem.io/root-uid":"3"}}`
			},
			record: true,
		},
		"the leaf of an earlier root": {
			root: func(p *corev1.Pod) { p.UID = "another"; p.Labels["app"] = "shop" },
		},
		"a foreign Pod": {
			root: func(p *corev1.Pod) { p.Labels["app"] = "shop" },
			leaf: func(p *corev1.Pod) { delete(p.Labels, "xylem.io/host") },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootPod(corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "init", Image: "init:1"}},
				Containers:     []corev1.Container{{Name: "web", Image: "web:1"}},
				Tolerations:    []corev1.Toleration{exists("a")},

				ActiveDeadlineSeconds: mirrortest.PointerTo(int64(100)),
			})
			root.Labels = map[string]string{"app": "web", "tier": "front"}
			root.Annotations = map[string]string{"note": "1", "old": "o"}
			leaf, err := TranslatePod(root, mirrortest.Member)
			if err != nil {
				t.Fatal(err)
			}
			if c.root != nil {
				c.root(root)
			}
			if c.leaf != nil {
				c.leaf(leaf)
			}
			got := PodDriftOf(root, leaf, mirrortest.Member)
			if got.IsEmpty() == c.record {
				t.Errorf("Empty returned %v, want %v", got.IsEmpty(), !c.record)
			}
			if c.record {
				before := leaf.DeepCopy()
				again := ApplyPodDrift(leaf, got)
				if diff := cmp.Diff(before, leaf); diff != "" {
					t.Errorf("LeafDrift changed its argument:\n%s", diff)
				}
				drift := PodDriftOf(root, again, mirrortest.Member)
				if got.Resizes() { // another write
					if drift.NeedsUpdate() {
						t.Errorf("before the resize, the leaf needs another update: %+v", drift)
					}
					again, _ = ResizePod(again, drift)
					drift = PodDriftOf(root, RecordResize(root, again), mirrortest.Member)
				}
				if !drift.IsEmpty() {
					t.Errorf("the leaf still drifts after the write: %+v", drift)
				}
				delete(got.Annotations, v1alpha1.AnnotationPushed)
				if len(got.Annotations) == 0 {
					got.Annotations = nil
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
