package ledger

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// Methods that the driver records.
const (
	CreateVolume = "CreateVolume"
	DeleteVolume = "DeleteVolume"
	ExpandVolume = "ControllerExpandVolume"
	ModifyVolume = "ControllerModifyVolume"
	// CreateSnapshot and DeleteSnapshot have the source volume's ID and claim.
	CreateSnapshot = "CreateSnapshot"
	DeleteSnapshot = "DeleteSnapshot"
	// PublishVolume attaches a volume to a node, UnpublishVolume detaches it.
	PublishVolume   = "ControllerPublishVolume"
	UnpublishVolume = "ControllerUnpublishVolume"
)

// OK is the code of a call that succeeded, as gRPC spells it.
const OK = "OK"

// Entry is one call.
type Entry struct {
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	// Code is the gRPC code of the answer by name; Message its text unless OK.
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	// VolumeName is the name that the provisioner asked for, VolumeID the
	// handle that the driver gave. Either may be empty where a call lacks it.
	VolumeName string `json:"volumeName,omitempty"`
	VolumeID   string `json:"volumeID,omitempty"`
	// CapacityBytes is the capacity after the call, or what was requested if it failed.
	CapacityBytes int64 `json:"capacityBytes,omitempty"`
	// Parameters are the class's, without the claim's identity.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Claim and Volume are the objects that the call was made for, where the
	// provisioner says (--extra-create-metadata).
	ClaimNamespace string `json:"claimNamespace,omitempty"`
	ClaimName      string `json:"claimName,omitempty"`
	PVName         string `json:"pvName,omitempty"`
	// Source is the ID of the volume or snapshot that CreateVolume filled the volume from.
	Source string `json:"source,omitempty"`
	// Data identifies what is on the disk, or in the snapshot, that the call created:
	// equal values are equal data. An empty disk has a value that no other disk has.
	Data string `json:"data,omitempty"`
	// SnapshotName is the name that the snapshotter asked for, SnapshotID the handle.
	SnapshotName string `json:"snapshotName,omitempty"`
	SnapshotID   string `json:"snapshotID,omitempty"`
	// VolumeSnapshot ("namespace/name") and ContentName are the objects that the snapshot
	// was taken for, where the snapshotter gives them (--extra-create-metadata).
	VolumeSnapshot string `json:"volumeSnapshot,omitempty"`
	ContentName    string `json:"contentName,omitempty"`
	// NodeID is the node that the volume was attached to or detached from.
	NodeID string `json:"nodeID,omitempty"`
	// Repeated: the call changed nothing, for it had been carried out before.
	Repeated bool `json:"repeated,omitempty"`
	// Recovered: written at a restart, for what was done on disk just before a
	// crash and not recorded.
	Recovered bool `json:"recovered,omitempty"`
	// ReplyLost: the call was carried out and its success not told (fault injection).
	ReplyLost bool `json:"replyLost,omitempty"`
}

// Done reports whether the call changed the disks.
func (e Entry) Done() bool { return (e.Code == OK || e.ReplyLost) && !e.Repeated }

// Ledger is a ledger as it was read at one moment.
type Ledger struct {
	Entries []Entry
}

// Read reads the ledger at path. One that does not exist yet is empty. A last
// line that is still being written is left out.
func Read(path string) (*Ledger, error) {
	content, err := os.ReadFile(path) //nolint:gosec // The caller's own ledger.
	if errors.Is(err, fs.ErrNotExist) {
		return &Ledger{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	l := &Ledger{}
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading the ledger: entry %d: %w", len(l.Entries)+1, err)
		}
		l.Entries = append(l.Entries, e)
	}
	return l, nil
}

// Live returns the volumes that were created and not deleted, by volume ID, each as
// its last capacity and the entry that made it have it.
func (l *Ledger) Live() map[string]Entry {
	live := map[string]Entry{}
	for _, e := range l.Entries {
		if !e.Done() {
			continue
		}
		switch e.Method {
		case CreateVolume:
			live[e.VolumeID] = e
		case DeleteVolume:
			delete(live, e.VolumeID)
		case ExpandVolume:
			if made, ok := live[e.VolumeID]; ok {
				made.CapacityBytes = e.CapacityBytes
				live[e.VolumeID] = made
			}
		}
	}
	return live
}

// LiveIDs returns the IDs of Live, sorted: for messages of tests.
func (l *Ledger) LiveIDs() []string { return slices.Sorted(maps.Keys(l.Live())) }

// LiveSnapshots returns the snapshots that were taken and not deleted, by snapshot ID,
// each as the entry that took it.
func (l *Ledger) LiveSnapshots() map[string]Entry {
	live := map[string]Entry{}
	for _, e := range l.Entries {
		switch {
		case !e.Done():
		case e.Method == CreateSnapshot:
			live[e.SnapshotID] = e
		case e.Method == DeleteSnapshot:
			delete(live, e.SnapshotID)
		}
	}
	return live
}

// LiveSnapshotIDs returns the IDs of LiveSnapshots, sorted.
func (l *Ledger) LiveSnapshotIDs() []string { return slices.Sorted(maps.Keys(l.LiveSnapshots())) }

// Attached returns the nodes that volumes are attached to, by volume ID, sorted.
func (l *Ledger) Attached() map[string][]string {
	attached := map[string][]string{}
	for _, e := range l.Entries {
		if !e.Done() || (e.Method != PublishVolume && e.Method != UnpublishVolume) {
			continue
		}
		nodes := slices.DeleteFunc(attached[e.VolumeID], func(n string) bool { return n == e.NodeID || e.NodeID == "" })
		if e.Method == PublishVolume {
			nodes = append(nodes, e.NodeID)
		}
		slices.Sort(nodes)
		if attached[e.VolumeID] = nodes; len(nodes) == 0 {
			delete(attached, e.VolumeID)
		}
	}
	return attached
}

// Count returns how many calls of method changed the disks: repetitions of what
// had been carried out before, and failures, do not count.
func (l *Ledger) Count(method string) int {
	n := 0
	for _, e := range l.Entries {
		if e.Method == method && e.Done() {
			n++
		}
	}
	return n
}

// Calls returns how many calls of method were answered, however.
func (l *Ledger) Calls(method string) int {
	n := 0
	for _, e := range l.Entries {
		if e.Method == method {
			n++
		}
	}
	return n
}

// Since returns the ledger without its first n entries: remember len(Entries)
// before doing something, and count afterwards.
func (l *Ledger) Since(n int) *Ledger {
	return &Ledger{Entries: l.Entries[min(n, len(l.Entries)):]}
}

// ForClaim returns the part of the ledger that concerns volumes which were created
// for the claim, and attempts to make one.
func (l *Ledger) ForClaim(namespace, name string) *Ledger {
	ids := map[string]bool{}
	part := &Ledger{}
	for _, e := range l.Entries {
		if e.ClaimNamespace == namespace && e.ClaimName == name {
			if e.VolumeID != "" {
				ids[e.VolumeID] = true
			}
			part.Entries = append(part.Entries, e)
		} else if ids[e.VolumeID] {
			part.Entries = append(part.Entries, e)
		}
	}
	return part
}

// Writer appends to a ledger. It may be used from many goroutines.
type Writer struct {
	mu   sync.Mutex
	file *os.File
}

// Open opens the ledger at path for appending. A last line that a crash cut
// short is removed first: the call was not answered.
func Open(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // The driver's own file.
	if err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	if err := cutTornLine(f); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the ledger: %w", err), f.Close())
	}
	return &Writer{file: f}, nil
}

func cutTornLine(f *os.File) error {
	var whole int64
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		whole += int64(len(line))
	}
	if err := f.Truncate(whole); err != nil {
		return err
	}
	_, err := f.Seek(whole, 0)
	return err
}

// Append writes e down, and returns when it is on disk.
func (w *Writer) Append(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }
