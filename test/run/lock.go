package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lock takes the lock of this user's test runs. Two runs at once would need twice the memory, and their
// results would depend on each other's load. The kernel releases the lock when its holder ends.
func lock(path, root string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a cache
		return nil, fmt.Errorf("create the directory of the lock: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // says who runs tests
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path) //nolint:gosec // the lock
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another test run is in progress (%s): wait until it ends, or stop it", strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("take the lock %s: %w", path, err)
	}
	if err := errors.Join(file.Truncate(0), write(file, fmt.Sprintf("process %d in %s\n", os.Getpid(), root))); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}

func write(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}
