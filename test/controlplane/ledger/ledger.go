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

// The methods that the driver records.
const (
	CreateVolume = "CreateVolume"
	DeleteVolume = "DeleteVolume"
	ExpandVolume = "ControllerExpandVolume"
	ModifyVolume = "ControllerModifyVolume"
	// Entries for CreateSnapshot and DeleteSnapshot contain the source volume's ID and claim.
	CreateSnapshot = "CreateSnapshot"
	DeleteSnapshot = "DeleteSnapshot"
	// PublishVolume attaches a volume to a node, and UnpublishVolume detaches it.
	PublishVolume   = "ControllerPublishVolume"
	UnpublishVolume = "ControllerUnpublishVolume"
)

// OK is gRPC's code for success.
const OK = "OK"

// Entry records one call.
type Entry struct {
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	// Code is the name of the gRPC code. Message is the error's text, or empty.
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	// VolumeName is the name that the provisioner requested, and VolumeID the handle that the
	// driver returned. Either may be empty.
	VolumeName string `json:"volumeName,omitempty"`
	VolumeID   string `json:"volumeID,omitempty"`
	// CapacityBytes is the capacity after the call, or the requested capacity if the call failed.
	CapacityBytes int64 `json:"capacityBytes,omitempty"`
	// Parameters are the class's parameters, without the claim's identity.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Claim and Volume are the objects for which the call was made, if the provisioner passes
	// them (--extra-create-metadata).
	ClaimNamespace string `json:"claimNamespace,omitempty"`
	ClaimName      string `json:"claimName,omitempty"`
	PVName         string `json:"pvName,omitempty"`
	// Source is the ID of the volume or snapshot from which CreateVolume filled the volume.
	Source string `json:"source,omitempty"`
	// Data identifies the content of the new disk or snapshot: equal values mean equal data. The
	// value of an empty disk is unique.
	Data string `json:"data,omitempty"`
	// SnapshotName is the name that the snapshotter requested, and SnapshotID the handle.
	SnapshotName string `json:"snapshotName,omitempty"`
	SnapshotID   string `json:"snapshotID,omitempty"`
	// VolumeSnapshot ("namespace/name") and ContentName are the objects for which the snapshot
	// was taken, if the snapshotter passes them (--extra-create-metadata).
	VolumeSnapshot string `json:"volumeSnapshot,omitempty"`
	ContentName    string `json:"contentName,omitempty"`
	// NodeID is the node to which the volume was attached, or from which it was detached.
	NodeID string `json:"nodeID,omitempty"`
	// Repeated reports whether the call changed nothing because an earlier one had succeeded.
	Repeated bool `json:"repeated,omitempty"`
	// Recovered reports whether the entry was written at a restart, for a change on disk that a
	// crash left without an entry.
	Recovered bool `json:"recovered,omitempty"`
	// ReplyLost reports whether the call was executed but its response was not sent (fault
	// injection).
	ReplyLost bool `json:"replyLost,omitempty"`
}

// Done reports whether the call changed the disks.
func (e Entry) Done() bool { return (e.Code == OK || e.ReplyLost) && !e.Repeated }

// Ledger is the content of a ledger at one moment.
type Ledger struct {
	Entries []Entry
}

// Read reads the ledger at path. A missing file is an empty ledger. Read ignores an incomplete
// last line.
func Read(path string) (*Ledger, error) {
	content, err := os.ReadFile(path) //nolint:gosec // The caller's own ledger.
	if errors.Is(err, fs.ErrNotExist) {
		return &Ledger{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	l := &Ledger{}
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read the ledger: entry %d: %w", len(l.Entries)+1, err)
		}
		l.Entries = append(l.Entries, e)
	}
	return l, nil
}

// Live returns the volumes that were created and not deleted, by volume ID, each with the entry
// that set its current capacity.
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

// LiveIDs returns the sorted IDs of Live, for test messages.
func (l *Ledger) LiveIDs() []string { return slices.Sorted(maps.Keys(l.Live())) }

// LiveSnapshots returns the snapshots that were taken and not deleted, by snapshot ID, each with
// the entry that took it.
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

// Attached returns, by volume ID, the sorted nodes to which volumes are attached.
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

// Count returns the number of calls of a method that changed the disks, without repeated and failed
// calls.
func (l *Ledger) Count(method string) int {
	n := 0
	for _, e := range l.Entries {
		if e.Method == method && e.Done() {
			n++
		}
	}
	return n
}

// Calls returns the number of calls of a method, including failed ones.
func (l *Ledger) Calls(method string) int {
	n := 0
	for _, e := range l.Entries {
		if e.Method == method {
			n++
		}
	}
	return n
}

// Since returns the ledger without its first n entries. To count the calls of one step, note
// len(Entries) before the step.
func (l *Ledger) Since(n int) *Ledger {
	return &Ledger{Entries: l.Entries[min(n, len(l.Entries)):]}
}

// ForClaim returns the entries about volumes that were created for the claim, including failed
// attempts.
func (l *Ledger) ForClaim(namespace, name string) *Ledger {
	return l.about(func(e Entry) bool { return e.ClaimNamespace == namespace && e.ClaimName == name })
}

// ForNamespace returns the entries about volumes that were created for claims in the namespace,
// including failed attempts.
func (l *Ledger) ForNamespace(namespace string) *Ledger {
	return l.about(func(e Entry) bool { return e.ClaimNamespace == namespace })
}

// about returns the entries that name a selected claim, and the later ones about its volumes.
func (l *Ledger) about(selected func(Entry) bool) *Ledger {
	ids := map[string]bool{}
	part := &Ledger{}
	for _, e := range l.Entries {
		if selected(e) {
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

// Writer appends to a ledger. It is safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	file *os.File
}

// Open opens the ledger at path for appending. It first removes an incomplete last line. The
// driver did not respond to that call.
func Open(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // The driver's own file.
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	if err := cutTornLine(f); err != nil {
		return nil, errors.Join(fmt.Errorf("open the ledger: %w", err), f.Close())
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

// Append writes e, and returns when it is on disk.
func (w *Writer) Append(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }
