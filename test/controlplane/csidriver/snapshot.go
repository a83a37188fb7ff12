package csidriver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

const (
	// snapshotsDir is the subdirectory of the driver's directory that contains a directory for each
	// snapshot.
	snapshotsDir = "snapshots"
	// ParamReadyAfter is a VolumeSnapshotClass parameter: the time until a new snapshot is ready to
	// use (Go duration).
	ParamReadyAfter = "readyAfter"
	// MethodUpload is not a CSI call. A Fault with this method keeps snapshots from becoming ready
	// until the faults change. Of the other fields, only Claim has an effect.
	MethodUpload = "Upload"
)

// Keys under which csi-snapshotter --extra-create-metadata passes the names of the snapshot's
// objects.
const (
	paramSnapshotName      = "csi.storage.k8s.io/volumesnapshot/name"
	paramSnapshotNamespace = "csi.storage.k8s.io/volumesnapshot/namespace"
	paramContentName       = "csi.storage.k8s.io/volumesnapshotcontent/name"
)

// snapshot is the record of a snapshot in its directory.
type snapshot struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Volume    string    `json:"volume"`
	SizeBytes int64     `json:"sizeBytes"`
	Taken     time.Time `json:"taken"`
	// Ready is the time at which the snapshot becomes ready to use.
	Ready          time.Time         `json:"ready"`
	Data           string            `json:"data"`
	Parameters     map[string]string `json:"parameters,omitempty"`
	VolumeSnapshot string            `json:"volumeSnapshot,omitempty"`
	ContentName    string            `json:"contentName,omitempty"`
	// The following fields are copied from the source volume.
	VolumeName     string `json:"volumeName,omitempty"`
	ClaimNamespace string `json:"claimNamespace,omitempty"`
	ClaimName      string `json:"claimName,omitempty"`
	PVName         string `json:"pvName,omitempty"`
}

func (sn snapshot) entry(method string) ledger.Entry {
	e := ledger.Entry{
		Method: method, Code: ledger.OK,
		SnapshotID: sn.ID, SnapshotName: sn.Name, VolumeID: sn.Volume, VolumeName: sn.VolumeName,
		CapacityBytes: sn.SizeBytes, Parameters: sn.Parameters,
		ClaimNamespace: sn.ClaimNamespace, ClaimName: sn.ClaimName, PVName: sn.PVName,
		VolumeSnapshot: sn.VolumeSnapshot, ContentName: sn.ContentName,
	}
	if method == ledger.CreateSnapshot {
		e.Data = sn.Data
	}
	return e
}

// ReadSnapshotData returns the content of a snapshot. dir is the driver's directory.
func ReadSnapshotData(dir, snapshotID string) (string, error) {
	data, err := readData(filepath.Join(dir, snapshotsDir, snapshotID))
	if err != nil {
		return "", fmt.Errorf("read snapshot %s: %w", snapshotID, err)
	}
	return data, nil
}

// CreateSnapshot implements csi.ControllerServer. It is idempotent by name: csi-snapshotter
// repeats the call until the snapshot is ready to use.
func (d *Driver) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	parameters := r.GetParameters()
	want := snapshot{
		ID: "snap-" + r.GetName(), Name: r.GetName(), Volume: r.GetSourceVolumeId(),
		Parameters: classParameters(parameters), ContentName: parameters[paramContentName],
	}
	if name := parameters[paramSnapshotName]; name != "" {
		want.VolumeSnapshot = parameters[paramSnapshotNamespace] + "/" + name
	}
	if v, ok := d.store.get(want.Volume); ok {
		want.SizeBytes, want.VolumeName = v.CapacityBytes, v.Name
		want.ClaimNamespace, want.ClaimName, want.PVName = v.ClaimNamespace, v.ClaimName, v.PVName
	} else if have, ok := d.store.getSnapshot(want.ID); ok {
		want = have // The volume may have been deleted.
	}
	var have snapshot
	e := want.entry(ledger.CreateSnapshot)
	e.SnapshotID = ""
	err := d.call(ctx, e, func(e *ledger.Entry) error {
		if !volumeName.MatchString(r.GetName()) || r.GetSourceVolumeId() == "" {
			return status.Errorf(codes.InvalidArgument, "snapshot name %q of volume %q: want a valid file name and an ID",
				r.GetName(), r.GetSourceVolumeId())
		}
		var err error
		if have, e.Repeated, err = d.take(want); err != nil {
			return err
		}
		if have.Volume != r.GetSourceVolumeId() {
			return status.Errorf(codes.AlreadyExists, "snapshot %s already exists, taken of volume %s", have.Name, have.Volume)
		}
		e.SnapshotID, e.CapacityBytes, e.Data = have.ID, have.SizeBytes, have.Data
		return nil
	})
	if err != nil {
		return nil, err
	}
	out, err := d.answer(have)
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: out}, nil
}

// take takes a snapshot unless it already exists.
func (d *Driver) take(want snapshot) (have snapshot, existed bool, err error) {
	delay, err := time.ParseDuration(cmp.Or(want.Parameters[ParamReadyAfter], "0s"))
	if err != nil {
		return snapshot{}, false, status.Errorf(codes.InvalidArgument, "class parameter %s: %v", ParamReadyAfter, err)
	}
	want.Taken = time.Now()
	want.Ready = want.Taken.Add(delay)
	have, existed, err = d.store.takeSnapshot(want)
	if errors.Is(err, fs.ErrNotExist) {
		return snapshot{}, false, status.Errorf(codes.NotFound, "volume %s does not exist", want.Volume)
	}
	if err != nil {
		return snapshot{}, false, d.storeError(err, want.Name)
	}
	return have, existed, nil
}

// answer converts a snapshot to a CSI response.
func (d *Driver) answer(sn snapshot) (*csi.Snapshot, error) {
	uploading, err := d.faults.has(MethodUpload, sn.ClaimNamespace+"/"+sn.ClaimName)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.Snapshot{
		SnapshotId: sn.ID, SourceVolumeId: sn.Volume, SizeBytes: sn.SizeBytes,
		CreationTime: timestamppb.New(sn.Taken), ReadyToUse: !uploading && !time.Now().Before(sn.Ready),
	}, nil
}

// DeleteSnapshot implements csi.ControllerServer. It succeeds if the snapshot does not exist.
func (d *Driver) DeleteSnapshot(ctx context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	e := ledger.Entry{Method: ledger.DeleteSnapshot, SnapshotID: r.GetSnapshotId()}
	if sn, ok := d.store.getSnapshot(r.GetSnapshotId()); ok {
		e = sn.entry(ledger.DeleteSnapshot)
	}
	return &csi.DeleteSnapshotResponse{}, d.call(ctx, e, func(e *ledger.Entry) error {
		if r.GetSnapshotId() == "" {
			return status.Error(codes.InvalidArgument, "snapshot ID is required")
		}
		existed, err := d.store.removeSnapshot(r.GetSnapshotId())
		if err != nil {
			return d.storeError(err, r.GetSnapshotId())
		}
		e.Repeated = !existed
		return nil
	})
}

// ListSnapshots implements csi.ControllerServer. csi-snapshotter calls it for snapshots that it
// did not take itself (pre-provisioned contents).
func (d *Driver) ListSnapshots(_ context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	list := d.store.listSnapshots(r.GetSnapshotId(), r.GetSourceVolumeId())
	start := 0
	if token := r.GetStartingToken(); token != "" {
		var err error
		if start, err = strconv.Atoi(token); err != nil || start < 0 || start > len(list) {
			return nil, status.Errorf(codes.Aborted, "starting token %q is not valid", token)
		}
	}
	list = list[start:]
	out := &csi.ListSnapshotsResponse{}
	if limit := int(r.GetMaxEntries()); limit > 0 && len(list) > limit {
		list = list[:limit]
		out.NextToken = strconv.Itoa(start + limit)
	}
	for _, sn := range list {
		s, err := d.answer(sn)
		if err != nil {
			return nil, err
		}
		out.Entries = append(out.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: s})
	}
	return out, nil
}

// sourceID returns the ID of the volume or snapshot from which a volume is created.
func sourceID(source *csi.VolumeContentSource) string {
	if id := source.GetSnapshot().GetSnapshotId(); id != "" {
		return id
	}
	return source.GetVolume().GetVolumeId()
}

// admitSource rejects a source that cannot be used for the volume.
func (d *Driver) admitSource(source *csi.VolumeContentSource, want volume) error {
	if source == nil {
		return nil
	}
	var size int64
	if id := source.GetSnapshot().GetSnapshotId(); id != "" {
		sn, ok := d.store.getSnapshot(id)
		if !ok {
			return status.Errorf(codes.NotFound, "snapshot %s does not exist", id)
		}
		answer, err := d.answer(sn)
		if err != nil {
			return err
		}
		if !answer.GetReadyToUse() {
			return status.Errorf(codes.Unavailable, "snapshot %s is not ready to use", id)
		}
		size = sn.SizeBytes
	} else {
		v, ok := d.store.get(source.GetVolume().GetVolumeId())
		if !ok {
			return status.Errorf(codes.NotFound, "volume %q, the source of the clone, does not exist", source.GetVolume().GetVolumeId())
		}
		size = v.CapacityBytes
	}
	if want.CapacityBytes < size {
		return status.Errorf(codes.OutOfRange, "volume %s: %d bytes requested, but the source has %d", want.Name, want.CapacityBytes, size)
	}
	return nil
}

// admitDeletion rejects the deletion of a volume that is attached, or that has dependent
// snapshots.
func (d *Driver) admitDeletion(id string) error {
	v, ok := d.store.get(id)
	if !ok {
		return nil
	}
	if len(v.Nodes) > 0 {
		return status.Errorf(codes.FailedPrecondition, "volume %s is attached to %q", id, v.Nodes)
	}
	if n := len(d.store.listSnapshots("", id)); v.Parameters[ParamHeldBySnapshots] == "true" && n > 0 {
		return status.Errorf(codes.FailedPrecondition, "volume %s has %d dependent snapshots", id, n)
	}
	return nil
}

func (s *store) reconcileSnapshots(l *ledger.Ledger, book *ledger.Writer) error {
	live := l.LiveSnapshots()
	for id, sn := range s.snapshots {
		if _, ok := live[id]; !ok {
			if err := recovered(book, sn.entry(ledger.CreateSnapshot)); err != nil {
				return err
			}
		}
	}
	for id, e := range live {
		if _, ok := s.snapshots[id]; !ok {
			e.Method, e.Data = ledger.DeleteSnapshot, ""
			if err := recovered(book, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *store) getSnapshot(id string) (snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sn, ok := s.snapshots[id]
	return sn, ok
}

// listSnapshots returns the snapshots with the given ID that were taken of the given volume. An
// empty argument matches all.
func (s *store) listSnapshots(id, volumeID string) []snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []snapshot
	for _, sn := range s.snapshots {
		if (id == "" || sn.ID == id) && (volumeID == "" || sn.Volume == volumeID) {
			out = append(out, sn)
		}
	}
	slices.SortFunc(out, func(a, b snapshot) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// takeSnapshot copies the volume's disk unless the snapshot exists, and returns the snapshot. The
// error is fs.ErrNotExist if the volume does not exist.
func (s *store) takeSnapshot(sn snapshot) (stored snapshot, existed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.snapshots[sn.ID]; ok {
		return have, true, nil
	}
	v, ok := s.volumes[sn.Volume]
	if !ok {
		return snapshot{}, false, fs.ErrNotExist
	}
	sn.SizeBytes = v.CapacityBytes
	tmp := filepath.Join(s.snapshotsDir, "."+sn.ID)
	if sn.Data, err = s.fill(tmp, v.ID, ""); err != nil {
		return snapshot{}, false, err
	}
	if err := writeRecord(tmp, sn); err != nil {
		return snapshot{}, false, err
	}
	if err := os.Rename(tmp, filepath.Join(s.snapshotsDir, sn.ID)); err != nil {
		return snapshot{}, false, err
	}
	s.snapshots[sn.ID] = sn
	return sn, false, nil
}

// removeSnapshot deletes a snapshot. Volumes that were created from it are copies.
func (s *store) removeSnapshot(id string) (existed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.snapshots[id]; !ok {
		return false, nil
	}
	tmp := filepath.Join(s.snapshotsDir, "."+id)
	if err := os.Rename(filepath.Join(s.snapshotsDir, id), tmp); err != nil {
		return true, err
	}
	delete(s.snapshots, id)
	return true, os.RemoveAll(tmp)
}
