package reflectedclass

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func classWith(uid types.UID, provisioner string, parameters map[string]string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", UID: uid}, Provisioner: provisioner, Parameters: parameters}
}

// An invalid class is reported only once, even if it is reconciled again. If it is re-created, it
// is reported again.
func TestReportInvalidParameters(t *testing.T) {
	const ours = v1alpha1.ProvisionerName
	wrong := map[string]string{"xylem.io/sise": "x"}
	recorder := events.NewFakeRecorder(8)
	r := &Reconciler{Recorder: recorder, reportedUIDs: map[string]types.UID{}}
	for _, step := range []struct {
		name     string
		class    *storagev1.StorageClass
		reported bool
	}{
		{"a valid class", classWith("1", ours, map[string]string{"xylem.io/member-class": "gp3"}), false},
		{"a class of another provisioner", classWith("2", "ebs.csi.aws.com", wrong), false},
		{"an invalid class", classWith("3", ours, wrong), true},
		{"the invalid class is reconciled again", classWith("3", ours, wrong), false},
		{"the class is deleted", nil, false},
		{"the class is re-created and still invalid", classWith("4", ours, wrong), true},
		{"the class is replaced without an event for the deletion", classWith("5", ours, wrong), true},
	} {
		r.reportInvalidParameters("fast", step.class)
		var said string
		select {
		case said = <-recorder.Events:
		default:
		}
		if diff := cmp.Diff(step.reported, strings.Contains(said, "ClassInvalid") && strings.Contains(said, "xylem.io/sise")); diff != "" {
			t.Errorf("%s: event is %q (-want +got):\n%s", step.name, said, diff)
		}
	}
}
