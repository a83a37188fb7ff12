package podspec

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func debugger(name, target string, mounts ...string) corev1.EphemeralContainer {
	c := corev1.EphemeralContainer{TargetContainerName: target}
	c.Name, c.Image = name, "busybox:1"
	for _, mount := range mounts {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: mount, MountPath: "/" + mount})
	}
	return c
}

func TestApplyDebug(t *testing.T) {
	const token = "kube-api-access-x"
	claimed := debugger("claimed", "web")
	claimed.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	for name, tc := range map[string]struct {
		root, leaf []corev1.EphemeralContainer
		lacks      []string
		want       []corev1.EphemeralContainer
		refused    bool
	}{
		"none":                                  {},
		"one":                                   {root: []corev1.EphemeralContainer{debugger("a", "web")}, lacks: []string{"a"}, want: []corev1.EphemeralContainer{debugger("a", "web")}},
		"a container that the leaf already has": {root: []corev1.EphemeralContainer{debugger("a", "web")}, leaf: []corev1.EphemeralContainer{debugger("a", "")}, want: []corev1.EphemeralContainer{debugger("a", "")}},
		"another container, in addition to the member's own": {
			root: []corev1.EphemeralContainer{debugger("a", "web"), debugger("b", "")}, leaf: []corev1.EphemeralContainer{debugger("own", "web"), debugger("a", "web")},
			lacks: []string{"b"}, want: []corev1.EphemeralContainer{debugger("own", "web"), debugger("a", "web"), debugger("b", "")},
		},
		"a container that mounts the token, which leaves lack": {root: []corev1.EphemeralContainer{debugger("a", "", token, "data")}, lacks: []string{"a"}, want: []corev1.EphemeralContainer{debugger("a", "", "data")}},
		"a container with a claim for a dynamic resource":      {root: []corev1.EphemeralContainer{claimed}, lacks: []string{"claimed"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootPod(corev1.PodSpec{
				Containers: []corev1.Container{{Name: "web"}}, Volumes: []corev1.Volume{mirrortest.NewTokenVolume(token)}, EphemeralContainers: tc.root,
			})
			leaf := &corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: tc.leaf}}
			before := root.DeepCopy()
			if diff := cmp.Diff(tc.lacks, MissingDebugContainers(root, leaf)); diff != "" {
				t.Errorf("missing containers (-want +got):\n%s", diff)
			}
			got, err := leaf, error(nil)
			for _, name := range tc.lacks {
				if got, err = AddDebugContainer(root, got, name, func(*corev1.Pod) {}); err != nil {
					break
				}
			}
			var refusal *mirror.Refusal
			if refused := errors.As(err, &refusal) && refusal.Reason == v1alpha1.ReasonPodUnsupported; refused != tc.refused {
				t.Fatalf("error is %v, want a refusal: %t", err, tc.refused)
			}
			if tc.refused {
				return
			}
			if diff := cmp.Diff(tc.want, got.Spec.EphemeralContainers); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, root); diff != "" || len(leaf.Spec.EphemeralContainers) != len(tc.leaf) {
				t.Errorf("the function changed an argument:\n%s", diff)
			}
		})
	}
}

// A Pod cannot be created with ephemeral containers, so translation omits them. A refused one does
// not affect the rest of the Pod.
func TestTranslateWithoutDebug(t *testing.T) {
	refused := debugger("a", "")
	refused.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	root := mirrortest.NewRootPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}, EphemeralContainers: []corev1.EphemeralContainer{refused}})
	leaf, err := TranslatePod(root, mirrortest.Member)
	if err != nil || len(leaf.Spec.EphemeralContainers) > 0 {
		t.Fatalf("leaf is %v, error %v; want a leaf without ephemeral containers", leaf, err)
	}
	names := []string{}
	for _, c := range EphemeralAsContainers(root.Spec.EphemeralContainers) {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"a"}) {
		t.Errorf("AsContainers returned containers %q, want a", names)
	}
}
