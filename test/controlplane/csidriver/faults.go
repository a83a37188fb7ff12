package csidriver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// faultsFile is the file in the driver's directory that contains its faults.
const faultsFile = "faults.json"

// stallPoll is the interval at which a stalled call checks whether it may continue.
const stallPoll = 20 * time.Millisecond

// Fault makes calls of one method fail.
type Fault struct {
	// Method is the CSI method, such as ledger.CreateVolume.
	Method string `json:"method"`
	// Claim, as "namespace/name", restricts the fault to volumes created for that
	// claim, and to their snapshots.
	Claim string `json:"claim,omitempty"`
	// Times is the number of calls that fail; 0 means all until the faults change.
	Times int `json:"times,omitempty"`
	// Stall delays the call until the faults change or its caller gives up.
	Stall bool `json:"stall,omitempty"`
	// Code, if not OK, is the error code that the call returns, and Message is the error's text.
	Code    codes.Code `json:"code,omitempty"`
	Message string     `json:"message,omitempty"`
	// After executes the call before it stalls or fails, so that the volume exists but the
	// response is lost.
	After bool `json:"after,omitempty"`
}

// faultFile is the content of the faults file. A new ID means that the faults were set again, even
// to the same values. The driver then restarts the count of Times.
type faultFile struct {
	ID     string  `json:"id"`
	Faults []Fault `json:"faults"`
}

// SetFaults replaces the faults of the driver whose directory is dir. Without arguments, it
// removes them, and stalled calls continue. It affects the next call that the driver receives.
func SetFaults(dir string, faults ...Fault) error {
	content, err := json.Marshal(faultFile{ID: rand.Text(), Faults: faults})
	if err != nil {
		return fmt.Errorf("set faults: %w", err)
	}
	path := filepath.Join(dir, faultsFile)
	tmp := path + "." + rand.Text()
	if err := os.WriteFile(tmp, content, 0o600); err != nil {
		return fmt.Errorf("set faults: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("set faults: %w", err)
	}
	return nil
}

// injector selects the faults for calls.
type injector struct {
	path string

	mu   sync.Mutex
	id   string
	used map[int]int // calls that failed, by index of the fault
}

func newInjector(dir string) *injector {
	return &injector{path: filepath.Join(dir, faultsFile)}
}

func (i *injector) load() (faultFile, error) {
	content, err := os.ReadFile(i.path)
	if errors.Is(err, fs.ErrNotExist) {
		return faultFile{}, nil
	}
	if err != nil {
		return faultFile{}, fmt.Errorf("read faults: %w", err)
	}
	var f faultFile
	if err := json.Unmarshal(content, &f); err != nil {
		return faultFile{}, fmt.Errorf("read faults: %w", err)
	}
	return f, nil
}

// next returns the fault for a call, or nil, and the ID of the current faults.
func (i *injector) next(method, claim string) (*Fault, string, error) {
	file, err := i.load()
	if err != nil {
		return nil, "", err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if file.ID != i.id {
		i.id, i.used = file.ID, map[int]int{}
	}
	for n, f := range file.Faults {
		if f.Method != method || (f.Claim != "" && f.Claim != claim) {
			continue
		}
		if f.Times > 0 && i.used[n] >= f.Times {
			continue
		}
		i.used[n]++
		return &f, file.ID, nil
	}
	return nil, "", nil
}

// has reports whether there is a fault for the method and claim, and does not count it as used.
func (i *injector) has(method, claim string) (bool, error) {
	file, err := i.load()
	return slices.ContainsFunc(file.Faults, func(f Fault) bool {
		return f.Method == method && (f.Claim == "" || f.Claim == claim)
	}), err
}

// suffer stalls, and returns an error, as the fault specifies.
func (i *injector) suffer(ctx context.Context, f *Fault, id string) error {
	if f.Stall {
		if err := i.stall(ctx, id); err != nil {
			return err
		}
	}
	if f.Code == codes.OK {
		return nil
	}
	message := f.Message
	if message == "" {
		message = "injected fault"
	}
	return status.Error(f.Code, message)
}

func (i *injector) stall(ctx context.Context, id string) error {
	ticker := time.NewTicker(stallPoll)
	defer ticker.Stop()
	for {
		file, err := i.load()
		if err != nil {
			return status.Error(codes.Internal, err.Error())
		}
		if file.ID != id {
			return nil
		}
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-ticker.C:
		}
	}
}
