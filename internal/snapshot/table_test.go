package snapshot

import (
	"maps"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

func TestTable(t *testing.T) {
	for _, problem := range table.FindProblems() {
		t.Error(problem)
	}
}

// An admin changes spec.volumeSnapshotRef of a placed content, which the API server allows, and then
// deletes the content. The member's controllers ignore it, because they find the leaves by the UID in
// its name.
func TestChangedReference(t *testing.T) {
	placed := func(name string, annotations map[string]string) *Observed {
		host := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "host", DeletionTimestamp: &deleted, Finalizers: []string{mirrorsnapshot.FinalizerContent},
			Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: memberInTable.ClusterID, v1alpha1.AttributeLeafUID: "content", mirrorsnapshot.AnnBeingDeleted: "yes"},
		}}
		maps.Copy(host.Annotations, annotations)
		host.Spec.Driver, host.Spec.DeletionPolicy = v1alpha1.ProvisionerName, retains
		host.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "shop", Name: "again", UID: "again"}
		return &Observed{Host: host, Member: memberInTable, UID: "again", Invalid: MisreferencedRefusal(host)}
	}
	if p := NextPlan(placed("snapcontent-root", nil)); p.Owner != HostSnapshot || p.Step != None || p.Report == nil || !strings.Contains(p.Report.Message, `with uid "root"`) {
		t.Errorf("the plan is %+v; want a report by host_snapshot", p)
	}
	if p := NextPlan(placed("snapcontent-root", map[string]string{v1alpha1.AnnotationAbandon: "true"})); p.Step != Abandon {
		t.Errorf("the plan is %+v; want step %s after an admin abandoned the snapshot", p, Abandon)
	}
	if p := NextPlan(placed("snapcontent-again", nil)); p.Report != nil {
		t.Errorf("a content with an unchanged reference is rejected: %v", p.Report)
	}
}
