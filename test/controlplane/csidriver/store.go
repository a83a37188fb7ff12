package csidriver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// Names of files and directories in the driver's directory.
const (
	ledgerFile = "ledger.jsonl"
	volumesDir = "volumes"
	recordFile = ".volume.json"
	// A Pod sees only a volume's filesDir or, for a block device, its blockFile.
	filesDir  = "files"
	blockFile = "block"
)

// dataFile contains the data of WriteData and ReadData.
var dataFile = filepath.Join(filesDir, "data")

// LedgerPath returns the path of a driver's ledger. dir is the driver's directory.
func LedgerPath(dir string) string { return filepath.Join(dir, ledgerFile) }

// VolumesDir returns the directory of a driver's volumes. dir is the driver's directory.
func VolumesDir(dir string) string { return filepath.Join(dir, volumesDir) }

// FilesPath returns the directory that a Pod sees as a volume. dir is the driver's directory.
func FilesPath(dir, volumeID string) string {
	return filepath.Join(VolumesDir(dir), volumeID, filesDir)
}

// DevicePath returns the file that a Pod sees as a block device. dir is the driver's directory.
func DevicePath(dir, volumeID string) string {
	return filepath.Join(VolumesDir(dir), volumeID, blockFile)
}

// volume is the record of a volume in its directory.
type volume struct {
	ID             string            `json:"id"`
	Name           string            `json:"name"`
	CapacityBytes  int64             `json:"capacityBytes"`
	Block          bool              `json:"block,omitempty"`
	Parameters     map[string]string `json:"parameters,omitempty"`
	Mutable        map[string]string `json:"mutableParameters,omitempty"`
	ClaimNamespace string            `json:"claimNamespace,omitempty"`
	ClaimName      string            `json:"claimName,omitempty"`
	PVName         string            `json:"pvName,omitempty"`
	// Source is the ID of the volume or snapshot from which the volume was created. Data
	// identifies the initial content of the disk.
	Source string `json:"source,omitempty"`
	Data   string `json:"data,omitempty"`
	// Nodes are the nodes to which the volume is attached.
	Nodes []string `json:"nodes,omitempty"`
}

func (v volume) entry(method string) ledger.Entry {
	return ledger.Entry{
		Method: method, Code: ledger.OK,
		VolumeID: v.ID, VolumeName: v.Name, CapacityBytes: v.CapacityBytes, Parameters: v.Parameters,
		ClaimNamespace: v.ClaimNamespace, ClaimName: v.ClaimName, PVName: v.PVName,
	}
}

// created returns the ledger entry for the volume's creation.
func (v volume) created() ledger.Entry {
	e := v.entry(ledger.CreateVolume)
	e.Source, e.Data = v.Source, v.Data
	return e
}

// store keeps the records of volumes and snapshots on disk, with a copy in memory.
type store struct {
	dir, snapshotsDir string

	mu        sync.Mutex
	volumes   map[string]volume   // by ID
	snapshots map[string]snapshot // by ID
}

// openStore reads the state on disk. It adds entries to the ledger that are missing because the
// driver crashed after it had changed a directory.
func openStore(dir string, book *ledger.Writer) (*store, error) {
	s := &store{dir: VolumesDir(dir), snapshotsDir: filepath.Join(dir, snapshotsDir)}
	var err error
	if s.volumes, err = readAll(s.dir, func(v volume) string { return v.ID }); err != nil {
		return nil, fmt.Errorf("open the volumes: %w", err)
	}
	if s.snapshots, err = readAll(s.snapshotsDir, func(sn snapshot) string { return sn.ID }); err != nil {
		return nil, fmt.Errorf("open the snapshots: %w", err)
	}
	l, err := ledger.Read(LedgerPath(dir))
	if err != nil {
		return nil, err
	}
	return s, errors.Join(s.reconcile(l, book), s.reconcileSnapshots(l, book))
}

// readAll reads the records of all directories below dir, and removes directories that a crash
// left incomplete.
func readAll[T any](dir string, id func(T) string) (map[string]T, error) {
	all := map[string]T{}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	dirs, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		path := filepath.Join(dir, d.Name())
		if strings.HasPrefix(d.Name(), ".") {
			if err := os.RemoveAll(path); err != nil {
				return nil, err
			}
			continue
		}
		var record T
		if err := readRecord(path, &record); err != nil {
			return nil, err
		}
		all[id(record)] = record
	}
	return all, nil
}

func (s *store) reconcile(l *ledger.Ledger, book *ledger.Writer) error {
	live := l.Live()
	for id, v := range s.volumes {
		made, ok := live[id]
		if !ok {
			if err := recovered(book, v.created()); err != nil {
				return err
			}
		} else if made.CapacityBytes != v.CapacityBytes {
			if err := recovered(book, v.entry(ledger.ExpandVolume)); err != nil {
				return err
			}
		}
	}
	for id, e := range live {
		if _, ok := s.volumes[id]; !ok {
			e.Method = ledger.DeleteVolume
			if err := recovered(book, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func recovered(book *ledger.Writer, e ledger.Entry) error {
	e.Time, e.Code, e.Recovered, e.ReplyLost = time.Now(), ledger.OK, true, false
	return book.Append(e)
}

func readRecord(dir string, record any) error {
	content, err := os.ReadFile(filepath.Join(dir, recordFile)) //nolint:gosec // Below the driver's own directory.
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, record); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

// writeRecord atomically replaces the record of a volume or snapshot.
func writeRecord(dir string, record any) error {
	content, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, recordFile)
	if err := os.WriteFile(path+".new", append(content, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (s *store) get(id string) (volume, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.volumes[id]
	return v, ok
}

// total returns the total capacity of all volumes.
func (s *store) total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totalLocked()
}

func (s *store) totalLocked() int64 {
	var n int64
	for _, v := range s.volumes {
		n += v.CapacityBytes
	}
	return n
}

// errFull is returned if a volume would exceed the total capacity.
var errFull = errors.New("no capacity left")

// create creates v unless it exists, and returns the existing or new volume. room limits the
// total capacity of all volumes; 0 means no limit. If v.Source is set, the disk is a copy of it,
// and the caller has checked that it exists.
func (s *store) create(v volume, room int64) (stored volume, existed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.volumes[v.ID]; ok {
		return have, true, nil
	}
	if room > 0 && s.totalLocked()+v.CapacityBytes > room {
		return volume{}, false, errFull
	}
	tmp := filepath.Join(s.dir, "."+v.ID)
	if v.Data, err = s.fill(tmp, v.Source, v.ID); err != nil {
		return volume{}, false, err
	}
	if v.Block {
		if err := sparse(filepath.Join(tmp, blockFile), v.CapacityBytes); err != nil {
			return volume{}, false, err
		}
	}
	if err := writeRecord(tmp, v); err != nil {
		return volume{}, false, err
	}
	if err := os.Rename(tmp, filepath.Join(s.dir, v.ID)); err != nil {
		return volume{}, false, err
	}
	s.volumes[v.ID] = v
	return v, false, nil
}

// remove deletes a volume and its content.
func (s *store) remove(id string) (existed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.volumes[id]; !ok {
		return false, nil
	}
	tmp := filepath.Join(s.dir, "."+id)
	if err := os.Rename(filepath.Join(s.dir, id), tmp); err != nil {
		return true, err
	}
	delete(s.volumes, id)
	return true, os.RemoveAll(tmp)
}

// change applies f to a volume's record and writes the result. room is as in create.
func (s *store) change(id string, room int64, f func(*volume)) (changed volume, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.volumes[id]
	if !ok {
		return volume{}, fs.ErrNotExist
	}
	old := v.CapacityBytes
	v.Mutable = maps.Clone(v.Mutable)
	f(&v)
	if room > 0 && s.totalLocked()-old+v.CapacityBytes > room {
		return volume{}, errFull
	}
	dir := filepath.Join(s.dir, id)
	if v.Block {
		if err := sparse(filepath.Join(dir, blockFile), v.CapacityBytes); err != nil {
			return volume{}, err
		}
	}
	if err := writeRecord(dir, v); err != nil {
		return volume{}, err
	}
	s.volumes[id] = v
	return v, nil
}

// sparse creates a file with the given size without allocating blocks.
func sparse(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // Below the driver's own directory.
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}
