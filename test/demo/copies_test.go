package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

func TestSnapshotChanges(t *testing.T) {
	snapshot := func(status *snapshotv1.VolumeSnapshotStatus) *snapshotv1.VolumeSnapshot {
		return &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "monday"}, Status: status}
	}
	ready := snapshot(&snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(true), RestoreSize: ptr.To(resource.MustParse("1Gi"))})
	failed := snapshot(&snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(false), Error: &snapshotv1.VolumeSnapshotError{Message: ptr.To("the pool is full")}})
	deleted := ready.DeepCopy()
	deleted.DeletionTimestamp = ptr.To(metav1.Now())
	tests := map[string]struct {
		old, now *snapshotv1.VolumeSnapshot
		want     []string
	}{
		"new":           {nil, snapshot(nil), []string{"snapshot monday created"}},
		"unchanged":     {ready, ready, nil},
		"ready":         {snapshot(nil), ready, []string{"snapshot monday READY, 1Gi"}},
		"new and ready": {nil, ready, []string{"snapshot monday created", "snapshot monday READY, 1Gi"}},
		"fails":         {snapshot(nil), failed, []string{"snapshot monday: the pool is full"}},
		"still fails":   {failed, failed, nil},
		"recovers":      {failed, ready, []string{"snapshot monday READY, 1Gi"}},
		"is deleted":    {ready, deleted, []string{"snapshot monday deleting"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, texts(snapshotChanges(test.old, test.now))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDiskChange(t *testing.T) {
	call := func(method string, change func(*ledger.Entry)) ledger.Entry {
		e := ledger.Entry{Method: method, Code: ledger.OK, ClaimName: "c", CapacityBytes: 1 << 30}
		if change != nil {
			change(&e)
		}
		return e
	}
	tests := map[string]struct {
		call ledger.Entry
		want string
	}{
		"created":          {call(ledger.CreateVolume, nil), "disk of c CREATED, 1Gi"},
		"copied":           {call(ledger.CreateVolume, func(e *ledger.Entry) { e.Source = "snap-1" }), "disk of c CREATED from its source, 1Gi"},
		"called again":     {call(ledger.CreateVolume, func(e *ledger.Entry) { e.Repeated = true }), "disk of c: CreateVolume repeated"},
		"failed":           {call(ledger.CreateSnapshot, func(e *ledger.Entry) { e.Code, e.Message = "Internal", "on fire" }), "disk of c: CreateSnapshot failed: on fire"},
		"snapshot":         {call(ledger.CreateSnapshot, nil), "snapshot of disk of c CREATED"},
		"snapshot deleted": {call(ledger.DeleteSnapshot, nil), "snapshot of disk of c DELETED"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, diskChange(test.call).text); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWritesTable(t *testing.T) {
	read := controlplane.Request{Verb: "get", Resource: "pods", Code: 200}
	write := controlplane.Request{Verb: "patch", Resource: "pods/status", Code: 200}
	parts := []spending{
		{"a snapshot", []controlplane.Requests{{write, read, write}, {read}}},
		{"nothing", []controlplane.Requests{nil, nil}},
		{"much", []controlplane.Requests{nil, {
			{Verb: "create", Resource: "volumesnapshots.snapshot.storage.k8s.io", Code: 201}, {Verb: "create", Resource: "persistentvolumeclaims", Code: 201}, write,
		}}},
	}
	want := []string{
		"a snapshot",
		"  host         2  2 patch pods/status",
		"nothing",
		"much",
		"  cluster38    3  1 create pvc, 1 patch pods/status, 1 create",
		"                    volumesnapshots.snapshot.storage.k8s.io",
	}
	got := writesTable([]string{"host", "cluster38"}, parts)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSelectColumns(t *testing.T) {
	output := "NAME     READYTOUSE   SOURCEPVC   SOURCESNAPSHOTCONTENT   RESTORESIZE\nmonday   true         nginx-pvc                           1Gi\n"
	want := []string{"NAME    READYTOUSE  RESTORESIZE", "monday  true        1Gi"}
	if diff := cmp.Diff(want, selectColumns(output, []string{"NAME", "RESTORESIZE", "READYTOUSE"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
