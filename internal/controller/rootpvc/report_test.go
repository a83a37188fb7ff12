package rootpvc

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// A claim in the member that lost a part of its stamp is not called foreign, and only the root's own
// counterpart may get the root's UID.
func TestNameTaken(t *testing.T) {
	m := mirror.Member{Registration: "cluster38", HostID: "host-id"}
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root"}}
	labels, restore := map[string]string{v1alpha1.LabelHost: "host-id"}, "xylem.io/root=shop/data and xylem.io/root-uid=root"
	for name, tc := range map[string]struct {
		labels map[string]string
		of     string
		copyOf string
		want   string
	}{
		"a copy of a shared volume":              {labels: map[string]string{v1alpha1.LabelHost: "host-id", v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}, copyOf: "pvc-1", want: `copy of the shared volume "pvc-1"`},
		"a foreign claim":                        {want: "did not create"},
		"the labels are gone":                    {of: "root", want: restore},
		"the annotations are gone":               {labels: labels, want: restore},
		"an annotation and a label are gone":     {labels: labels, of: "root", want: restore},
		"another host's claim":                   {labels: map[string]string{v1alpha1.LabelHost: "other"}, of: "theirs", want: "did not create"},
		"an earlier claim's counterpart":         {labels: labels, of: "earlier", want: "earlier claim"},
		"an earlier claim's, without the labels": {of: "earlier", want: "earlier claim"},
	} {
		t.Run(name, func(t *testing.T) {
			there := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Labels: tc.labels}}
			if tc.of != "" {
				metav1.SetMetaDataAnnotation(&there.ObjectMeta, v1alpha1.AnnotationRootUID, tc.of)
			}
			if tc.copyOf != "" {
				mirror.VolumeCopy{HostID: m.HostID, Volume: tc.copyOf, VolumeUID: "host-pv", ClaimUID: "another"}.StampCopy(there)
			}
			got := nameTakenRefusal(there, root, m)
			if got.Reason != v1alpha1.ReasonNameTaken || !strings.Contains(got.Message, tc.want) || tc.want != restore && strings.Contains(got.Message, "root-uid=root") {
				t.Errorf("got %s: %s", got.Reason, got.Message)
			}
		})
	}
}
