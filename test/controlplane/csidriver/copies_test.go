package csidriver

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

const mebi = 1 << 20

func driver(t *testing.T, dir string) *Driver {
	t.Helper()
	d, err := New(Options{Name: "test", Dir: dir, Attach: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.book.Close() })
	return d
}

func mounted() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

func creation(name string, source *csi.VolumeContentSource) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: mebi}, VolumeContentSource: source,
		VolumeCapabilities: []*csi.VolumeCapability{mounted()},
		Parameters:         map[string]string{paramClaimNamespace: "ns", paramClaimName: "claim-of-" + name},
	}
}

func fromVolume(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id},
	}}
}

func fromSnapshot(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id},
	}}
}

func (d *Driver) mustCreate(t *testing.T, r *csi.CreateVolumeRequest) string {
	t.Helper()
	out, err := d.CreateVolume(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return out.GetVolume().GetVolumeId()
}

func snap(name, volume string) *csi.CreateSnapshotRequest {
	return &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: volume, Parameters: map[string]string{
		paramSnapshotNamespace: "ns", paramSnapshotName: "nightly", paramContentName: "content",
	}}
}

func (d *Driver) mustSnap(t *testing.T, r *csi.CreateSnapshotRequest) *csi.Snapshot {
	t.Helper()
	out, err := d.CreateSnapshot(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return out.GetSnapshot()
}

func write(t *testing.T, dir, volume, data string) {
	t.Helper()
	if err := WriteData(dir, volume, data); err != nil {
		t.Fatal(err)
	}
}

func wantData(t *testing.T, dir, volume, want string) {
	t.Helper()
	got, err := ReadData(dir, volume)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("volume %s holds %q, want %q", volume, got, want)
	}
}

func book(t *testing.T, dir string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Read(LedgerPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCloneHasDataOfSource(t *testing.T) {
	dir := t.TempDir()
	d := driver(t, dir)
	source := d.mustCreate(t, creation("a", nil))
	write(t, dir, source, "monday")
	clone := d.mustCreate(t, creation("b", fromVolume(source)))
	write(t, dir, source, "tuesday")
	if again := d.mustCreate(t, creation("b", fromVolume(source))); again != clone {
		t.Errorf("repeated creation created %s, want %s", again, clone)
	}
	if _, err := d.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: source}); err != nil {
		t.Fatal(err)
	}
	wantData(t, dir, clone, "monday")

	live := book(t, dir).Live()
	want := ledger.Entry{
		Method: ledger.CreateVolume, Code: ledger.OK, VolumeName: "b", VolumeID: clone, CapacityBytes: mebi,
		ClaimNamespace: "ns", ClaimName: "claim-of-b", Source: source, Data: "monday",
	}
	got := live[clone]
	got.Time, got.Parameters = want.Time, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entry of the clone (-want +got):\n%s", diff)
	}
	if len(live) != 1 {
		t.Errorf("live = %v, want only the clone", live)
	}
}

func TestNewDisksDiffer(t *testing.T) {
	dir := t.TempDir()
	d := driver(t, dir)
	a, b := d.mustCreate(t, creation("a", nil)), d.mustCreate(t, creation("b", nil))
	live := book(t, dir).Live()
	if live[a].Data == "" || live[a].Data == live[b].Data {
		t.Errorf("data %q and %q, want different values", live[a].Data, live[b].Data)
	}
	wantData(t, dir, a, live[a].Data)
}

func TestRestoreHasDataOfSnapshot(t *testing.T) {
	dir := t.TempDir()
	d := driver(t, dir)
	source := d.mustCreate(t, creation("a", nil))
	write(t, dir, source, "before")
	sn := d.mustSnap(t, snap("s", source))
	write(t, dir, source, "after")
	again := d.mustSnap(t, snap("s", source))
	if again.GetSnapshotId() != sn.GetSnapshotId() || !again.GetCreationTime().AsTime().Equal(sn.GetCreationTime().AsTime()) {
		t.Errorf("repeated snapshot = %v, want %v", again, sn)
	}
	if !sn.GetReadyToUse() || sn.GetSizeBytes() != mebi || sn.GetSourceVolumeId() != source {
		t.Errorf("snapshot = %v, want it ready, of %s, with %d bytes", sn, source, mebi)
	}
	// A snapshot survives its volume, and a restored volume survives its snapshot.
	if _, err := d.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: source}); err != nil {
		t.Fatal(err)
	}
	restored := d.mustCreate(t, creation("b", fromSnapshot(sn.GetSnapshotId())))
	if _, err := d.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: sn.GetSnapshotId()}); err != nil {
		t.Fatal(err)
	}
	wantData(t, dir, restored, "before")
	if live := book(t, dir).LiveSnapshotIDs(); len(live) != 0 {
		t.Errorf("live snapshots = %v, want none", live)
	}
}

func TestSnapshotEntryNamesClaimAndObjects(t *testing.T) {
	dir := t.TempDir()
	d := driver(t, dir)
	source := d.mustCreate(t, creation("a", nil))
	sn := d.mustSnap(t, snap("s", source))
	d.mustSnap(t, snap("s", source))
	l := book(t, dir)
	got := l.LiveSnapshots()[sn.GetSnapshotId()]
	want := ledger.Entry{
		Method: ledger.CreateSnapshot, Code: ledger.OK, VolumeName: "a", VolumeID: source, CapacityBytes: mebi,
		ClaimNamespace: "ns", ClaimName: "claim-of-a", Data: source, SnapshotName: "s", SnapshotID: sn.GetSnapshotId(),
		VolumeSnapshot: "ns/nightly", ContentName: "content",
	}
	got.Time, got.Parameters = want.Time, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entry of the snapshot (-want +got):\n%s", diff)
	}
	if taken, calls := l.Count(ledger.CreateSnapshot), l.Calls(ledger.CreateSnapshot); taken != 1 || calls != 2 {
		t.Errorf("%d snapshots taken by %d calls, want 1 taken by 2", taken, calls)
	}
	if live := l.LiveIDs(); len(live) != 1 {
		t.Errorf("live volumes = %v, want one", live)
	}
}

func TestRejectedCalls(t *testing.T) {
	dir := t.TempDir()
	d := driver(t, dir)
	source := d.mustCreate(t, creation("a", nil))
	d.mustCreate(t, creation("copy", fromVolume(source)))
	sn := d.mustSnap(t, snap("s", source)).GetSnapshotId()
	slow := snap("slow", source)
	slow.Parameters[ParamReadyAfter] = "1h"
	unready := d.mustSnap(t, slow)
	if unready.GetReadyToUse() {
		t.Error("the snapshot is ready immediately, want it to take an hour")
	}
	held := creation("held", nil)
	held.Parameters[ParamHeldBySnapshots] = "true"
	heldID := d.mustCreate(t, held)
	heldSnapshot := d.mustSnap(t, snap("h", heldID)).GetSnapshotId()
	small := func(source *csi.VolumeContentSource) *csi.CreateVolumeRequest {
		r := creation("small", source)
		r.CapacityRange.RequiredBytes = mebi - 1
		return r
	}
	badDelay := snap("bad", source)
	badDelay.Parameters[ParamReadyAfter] = "soon"

	create := func(r *csi.CreateVolumeRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := d.CreateVolume(ctx, r); return err }
	}
	take := func(r *csi.CreateSnapshotRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := d.CreateSnapshot(ctx, r); return err }
	}
	tests := map[string]struct {
		call func(context.Context) error
		want codes.Code
	}{
		"clone of a missing volume":                           {create(creation("x", fromVolume("none"))), codes.NotFound},
		"clone without an ID":                                 {create(creation("x", fromVolume(""))), codes.NotFound},
		"clone that is too small":                             {create(small(fromVolume(source))), codes.OutOfRange},
		"another volume with the clone's name":                {create(creation("copy", nil)), codes.AlreadyExists},
		"restore of a missing snapshot":                       {create(creation("x", fromSnapshot("none"))), codes.NotFound},
		"restore that is too small":                           {create(small(fromSnapshot(sn))), codes.OutOfRange},
		"restore of a snapshot that is not ready":             {create(creation("x", fromSnapshot(unready.GetSnapshotId()))), codes.Unavailable},
		"snapshot of a missing volume":                        {take(snap("x", "none")), codes.NotFound},
		"snapshot without a volume":                           {take(snap("x", "")), codes.InvalidArgument},
		"snapshot with a path as its name":                    {take(snap("../x", source)), codes.InvalidArgument},
		"snapshot with an invalid delay":                      {take(badDelay), codes.InvalidArgument},
		"snapshot with the name of another volume's snapshot": {take(snap("s", heldID)), codes.AlreadyExists},
		"deletion of a volume with a dependent snapshot": {func(ctx context.Context) error {
			_, err := d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: heldID})
			return err
		}, codes.FailedPrecondition},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tt.call(t.Context()); status.Code(err) != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	if got := len(book(t, dir).LiveIDs()); got != 3 {
		t.Errorf("%d volumes, want the 3 that were not rejected", got)
	}

	if _, err := d.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: heldSnapshot}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: heldID}); err != nil {
		t.Errorf("delete a volume after its last snapshot was deleted: %v", err)
	}
}

func TestUploadLastsUntilTheFaultsChange(t *testing.T) {
	dir := t.TempDir()
	d := driver(t, dir)
	source, other := d.mustCreate(t, creation("a", nil)), d.mustCreate(t, creation("b", nil))
	if err := SetFaults(dir, Fault{Method: MethodUpload, Claim: "ns/claim-of-a"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if d.mustSnap(t, snap("a", source)).GetReadyToUse() {
			t.Error("the snapshot is ready during its upload")
		}
	}
	if !d.mustSnap(t, snap("b", other)).GetReadyToUse() {
		t.Error("the snapshot of another claim is not ready")
	}
	if err := SetFaults(dir); err != nil {
		t.Fatal(err)
	}
	if !d.mustSnap(t, snap("a", source)).GetReadyToUse() {
		t.Error("the snapshot is not ready after its upload")
	}
}

func TestSnapshotIsTakenDespiteLostResponse(t *testing.T) {
	dir := t.TempDir()
	d := driver(t, dir)
	source := d.mustCreate(t, creation("a", nil))
	fault := Fault{Method: ledger.CreateSnapshot, Claim: "ns/claim-of-a", Code: codes.DeadlineExceeded, After: true, Times: 1}
	if err := SetFaults(dir, fault); err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateSnapshot(t.Context(), snap("s", source)); status.Code(err) != codes.DeadlineExceeded {
		t.Fatalf("%v, want %s", err, codes.DeadlineExceeded)
	}
	if live := book(t, dir).LiveSnapshotIDs(); len(live) != 1 {
		t.Errorf("live snapshots = %v, want one", live)
	}
	d.mustSnap(t, snap("s", source))
	if n := book(t, dir).Count(ledger.CreateSnapshot); n != 1 {
		t.Errorf("%d snapshots were taken, want 1", n)
	}
}

func TestListSnapshots(t *testing.T) {
	d := driver(t, t.TempDir())
	a, b := d.mustCreate(t, creation("a", nil)), d.mustCreate(t, creation("b", nil))
	for name, volume := range map[string]string{"1": a, "2": a, "3": b} {
		d.mustSnap(t, snap(name, volume))
	}
	tests := map[string]struct {
		request *csi.ListSnapshotsRequest
		want    []string
		next    string
	}{
		"all":         {&csi.ListSnapshotsRequest{}, []string{"snap-1", "snap-2", "snap-3"}, ""},
		"one":         {&csi.ListSnapshotsRequest{SnapshotId: "snap-2"}, []string{"snap-2"}, ""},
		"a volume's":  {&csi.ListSnapshotsRequest{SourceVolumeId: a}, []string{"snap-1", "snap-2"}, ""},
		"none":        {&csi.ListSnapshotsRequest{SnapshotId: "none"}, nil, ""},
		"first page":  {&csi.ListSnapshotsRequest{MaxEntries: 2}, []string{"snap-1", "snap-2"}, "2"},
		"second page": {&csi.ListSnapshotsRequest{MaxEntries: 2, StartingToken: "2"}, []string{"snap-3"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := d.ListSnapshots(t.Context(), tt.request)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range out.GetEntries() {
				got = append(got, e.GetSnapshot().GetSnapshotId())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || out.GetNextToken() != tt.next {
				t.Errorf("next %q, snapshots (-want +got):\n%s", out.GetNextToken(), diff)
			}
		})
	}
	if _, err := d.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{StartingToken: "x"}); status.Code(err) != codes.Aborted {
		t.Errorf("bad token: %v, want %s", err, codes.Aborted)
	}
}

// TestRestartCompletesTheLedgerForSnapshots changes snapshots without writing a ledger entry, as if
// the driver had crashed in between.
func TestRestartCompletesTheLedgerForSnapshots(t *testing.T) {
	dir := t.TempDir()
	d := driver(t, dir)
	source := d.mustCreate(t, creation("a", nil))
	d.mustSnap(t, snap("old", source))
	if _, _, err := d.store.takeSnapshot(snapshot{ID: "snap-new", Name: "new", Volume: source}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.store.removeSnapshot("snap-old"); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, snapshotsDir, ".snap-half")
	if err := os.Mkdir(half, 0o700); err != nil {
		t.Fatal(err)
	}

	d = driver(t, dir)
	live := book(t, dir).LiveSnapshots()
	if e := live["snap-new"]; len(live) != 1 || !e.Recovered || e.Data != source {
		t.Errorf("live snapshots = %v, want the new one as recovered", live)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("an incomplete snapshot still exists: %v", err)
	}
	if data, err := ReadSnapshotData(dir, "snap-new"); err != nil || data != source {
		t.Errorf("the snapshot holds %q, %v, want %q", data, err, source)
	}
	if n := len(d.store.listSnapshots("", "")); n != 1 {
		t.Errorf("the driver has %d snapshots, want 1", n)
	}
}

func TestAttachment(t *testing.T) {
	dir := t.TempDir()
	d := driver(t, dir)
	id := d.mustCreate(t, creation("a", nil))
	publish := func(node string, mode csi.VolumeCapability_AccessMode_Mode) error {
		c := mounted()
		c.AccessMode.Mode = mode
		_, err := d.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: c})
		return err
	}
	unpublish := func(node string) error {
		_, err := d.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: node})
		return err
	}
	remove := func(string) error {
		_, err := d.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id})
		return err
	}
	once, many := csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	on := func(mode csi.VolumeCapability_AccessMode_Mode) func(string) error {
		return func(node string) error { return publish(node, mode) }
	}
	for i, step := range []struct {
		call  func(string) error
		node  string
		code  codes.Code
		nodes []string
	}{
		{on(once), "n1", codes.OK, []string{"n1"}},
		{on(once), "n1", codes.OK, []string{"n1"}},
		{on(once), "n2", codes.FailedPrecondition, []string{"n1"}},
		{remove, "", codes.FailedPrecondition, []string{"n1"}},
		{on(many), "n2", codes.OK, []string{"n1", "n2"}},
		{unpublish, "n1", codes.OK, []string{"n2"}},
		{unpublish, "n1", codes.OK, []string{"n2"}},
		{on(many), "n1", codes.OK, []string{"n1", "n2"}},
		{unpublish, "", codes.OK, nil},
		{remove, "", codes.OK, nil},
		{on(once), "n1", codes.NotFound, nil},
		{unpublish, "n1", codes.OK, nil},
	} {
		if err := step.call(step.node); status.Code(err) != step.code {
			t.Errorf("step %d: %v, want %s", i+1, err, step.code)
		}
		if diff := cmp.Diff(step.nodes, book(t, dir).Attached()[id]); diff != "" {
			t.Errorf("step %d: nodes (-want +got):\n%s", i+1, diff)
		}
	}
}

func TestSparseBlockDiskIsCopied(t *testing.T) {
	dir := t.TempDir()
	d := driver(t, dir)
	r := creation("a", nil)
	r.VolumeCapabilities[0].AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	source := d.mustCreate(t, r)
	disk := make([]byte, mebi)
	copy(disk[holeBytes+1:], "deep inside")
	if err := os.WriteFile(filepath.Join(VolumesDir(dir), source, blockFile), disk, 0o600); err != nil {
		t.Fatal(err)
	}
	r = creation("b", fromVolume(source))
	r.CapacityRange.RequiredBytes = 2 * mebi
	r.VolumeCapabilities[0].AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	clone := d.mustCreate(t, r)
	got, err := os.ReadFile(filepath.Join(VolumesDir(dir), clone, blockFile))
	if err != nil {
		t.Fatal(err)
	}
	if want := append(disk, make([]byte, mebi)...); !cmp.Equal(want, got) {
		t.Errorf("the clone's disk has %d bytes, want the source's data followed by zeros", len(got))
	}
}
