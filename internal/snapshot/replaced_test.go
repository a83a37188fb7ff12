package snapshot

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// A claim of a promise class may have another disk when the member takes the snapshot. Its data is not what the
// user asked for.
func TestReplacedByASnapshotOfAnotherDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		recorded, taken string
		want            bool
	}{
		"of the recorded disk":                     {recorded: "disk-1", taken: "disk-1"},
		"of the claim's next disk":                 {recorded: "disk-1", taken: "disk-2", want: true},
		"recorded by a version without this field": {taken: "disk-2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Observed{Host: &snapshotv1.VolumeSnapshotContent{}}
			metav1.SetMetaDataAnnotation(&s.Host.ObjectMeta, v1alpha1.AnnotationSource, tc.recorded)
			leaf := &snapshotv1.VolumeSnapshotContent{}
			leaf.Spec.Source.VolumeHandle = ptr.To(tc.taken)
			if got := s.RepresentsOtherSnapshot(leaf); got != tc.want {
				t.Errorf("Replaced() = %t, want %t", got, tc.want)
			}
		})
	}
}
