package mirror_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func stamped() *corev1.Pod {
	leaf := &corev1.Pod{}
	mirror.Origin{HostID: mirrortest.HostID, Root: types.NamespacedName{Namespace: "shop", Name: "web"}, UID: "pod-uid"}.StampLeaf(leaf)
	return leaf
}

func TestOriginIn(t *testing.T) {
	cases := map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"complete":                    {func(*corev1.Pod) {}, true},
		"in the root's namespace":     {func(p *corev1.Pod) { p.Namespace, p.Name = "shop", "web" }, true},
		"copied to another name":      {func(p *corev1.Pod) { p.Namespace, p.Name = "shop", "web-2" }, false},
		"forged in another namespace": {func(p *corev1.Pod) { p.Namespace, p.Name = "evil", "web" }, false},
		"another host":                {func(p *corev1.Pod) { p.Labels[v1alpha1.LabelHost] = "other" }, false},
		"without a host":              {func(p *corev1.Pod) { delete(p.Labels, v1alpha1.LabelHost) }, false},
		"without a manager":           {func(p *corev1.Pod) { delete(p.Labels, v1alpha1.LabelManagedBy) }, false},
		"another manager":             {func(p *corev1.Pod) { p.Labels[v1alpha1.LabelManagedBy] = "Helm" }, false},
		"without a root":              {func(p *corev1.Pod) { delete(p.Annotations, v1alpha1.AnnotationRoot) }, false},
		"a root without a name":       {func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationRoot] = "shop/" }, false},
		"without the root's UID":      {func(p *corev1.Pod) { delete(p.Annotations, v1alpha1.AnnotationRootUID) }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			leaf := stamped()
			c.change(leaf)
			if _, got := mirror.LeafOriginFromHost(mirrortest.HostID, leaf); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func FuzzOriginRoundTrip(f *testing.F) {
	f.Add("host-id", "shop", "web", "pod-uid")
	f.Add("host-id", "", "pvc-1234", "volume-uid")
	f.Fuzz(func(t *testing.T, hostID, namespace, name, uid string) {
		if hostID == "" || uid == "" || len(validation.IsDNS1123Subdomain(name)) > 0 ||
			namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
			t.Skip("not valid names or IDs")
		}
		root := &metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}
		leaf := &metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}}
		mirror.OriginForRoot(hostID, root).StampLeaf(leaf)

		got, ok := mirror.LeafOriginFromHost(hostID, leaf)
		if !ok {
			t.Fatal("the stamp is incomplete")
		}
		if diff := cmp.Diff(mirror.OriginForRoot(hostID, root), got); diff != "" {
			t.Errorf("origin (-want +got):\n%s", diff)
		}
		if leaf.Labels["a"] != "b" || leaf.Annotations["c"] != "d" {
			t.Error("the stamp removed existing labels or annotations")
		}
	})
}
