//go:build unix

package controlplane

import (
	"os"
	"syscall"
)

// tryLock takes the file lock at path and creates the file if necessary. It returns nil if
// another process has the lock. The kernel releases it when its holder dies, and children do not
// inherit it.
func tryLock(path string) *os.File {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // A path of ours.
	if err != nil {
		return nil
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil
	}
	return f
}
