package oracle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/test/controlplane"
)

func TestSuspended(t *testing.T) {
	restored := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	confirmed := restored.Add(time.Minute)
	volume := func(at time.Duration, policy corev1.PersistentVolumeReclaimPolicy) Sighting {
		return Sighting{At: restored.Add(at), Cluster: "one", Object: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"},
			Spec:       corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy, ClaimRef: &corev1.ObjectReference{Namespace: "fault-x"}},
		}}
	}
	deletion := func(at time.Duration) map[string]controlplane.Requests {
		return map[string]controlplane.Requests{"one": {{
			Time: restored.Add(at), Verb: "delete", Resource: "persistentvolumeclaims", Namespace: "fault-x", Name: "data", Code: 200,
		}}}
	}
	for name, tt := range map[string]struct {
		restored *Restore
		history  []Sighting
		requests map[string]controlplane.Requests
		want     int
	}{
		"a claim deleted without a restore":                    {nil, nil, deletion(30 * time.Second), 0},
		"a claim deleted while destruction is suspended":       {&Restore{Cluster: "host", At: restored, Confirmed: confirmed}, nil, deletion(30 * time.Second), 1},
		"a claim deleted before the restore could be detected": {&Restore{Cluster: "host", At: restored, Confirmed: confirmed}, nil, deletion(time.Second), 0},
		"a claim deleted after the confirmation":               {&Restore{Cluster: "host", At: restored, Confirmed: confirmed}, nil, deletion(2 * time.Minute), 0},
		"a claim deleted without a confirmation":               {&Restore{Cluster: "host", At: restored}, nil, deletion(2 * time.Minute), 1},
		"a claim deleted in the restored member":               {&Restore{Cluster: "one", At: restored, Confirmed: confirmed}, nil, deletion(30 * time.Second), 1},
		"a claim deleted in another member":                    {&Restore{Cluster: "two", At: restored, Confirmed: confirmed}, nil, deletion(30 * time.Second), 0},
		"a volume set to Delete":                               {&Restore{Cluster: "one", At: restored, Confirmed: confirmed}, []Sighting{volume(-time.Second, "Retain"), volume(30*time.Second, "Delete")}, nil, 1},
		"a volume set to Retain":                               {&Restore{Cluster: "one", At: restored, Confirmed: confirmed}, []Sighting{volume(-time.Second, "Delete"), volume(30*time.Second, "Retain")}, nil, 0},
		"a volume set to Delete after the confirmation":        {&Restore{Cluster: "one", At: restored, Confirmed: confirmed}, []Sighting{volume(-time.Second, "Retain"), volume(2*time.Minute, "Delete")}, nil, 0},
		"a volume that the restore itself returned to Delete":  {&Restore{Cluster: "one", At: restored, Confirmed: confirmed}, []Sighting{volume(-time.Second, "Retain"), volume(time.Second, "Delete")}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := Evidence{Namespace: "fault-x", Host: "host", Restored: tt.restored, History: tt.history, Requests: tt.requests}
			if got := suspended(e, index(e)); len(got) != tt.want {
				t.Errorf("found %v, want %d", got, tt.want)
			}
		})
	}
}
