package harness

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/xylem-io/xylem/test/panics"
)

// Panics returns this manager's panics since the last call.
func (m *Manager) Panics() ([]string, error) {
	f, err := os.Open(m.log)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // The manager has not been started yet.
	}
	if err != nil {
		return nil, fmt.Errorf("find panics: %w", err)
	}
	defer func() { _ = f.Close() }()
	m.mu.Lock()
	defer m.mu.Unlock()
	content, err := io.ReadAll(io.NewSectionReader(f, m.judged, 1<<62))
	if err != nil {
		return nil, fmt.Errorf("find panics: %w", err)
	}
	whole := strings.LastIndex(string(content), "\n") + 1
	m.judged += int64(whole)
	return panics.In(string(content[:whole])), nil
}

// Panics returns an error if a manager has panicked since the last call, whether controller-runtime
// recovered the panic or the process ended. A suite calls Panics after each story, and Stop calls
// it at the end.
func (x *Xylem) Panics() error {
	x.mu.Lock()
	managers := slices.Clone(x.managers)
	x.mu.Unlock()
	var errs []error
	for _, m := range managers {
		found, err := m.Panics()
		errs = append(errs, err)
		for _, p := range found {
			errs = append(errs, errors.New(p))
		}
	}
	return errors.Join(errs...)
}
