//go:build unix

package kubebin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPoll is the polling interval for a lock that another build holds. A build takes minutes.
const lockPoll = 500 * time.Millisecond

// lock takes the file lock at path, and calls waiting once if another process has it. The kernel
// releases it when its holder dies.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // Holds nothing.
	if err != nil {
		return nil, fmt.Errorf("lock the build: %w", err)
	}
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for waited := false; ; waited = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock the build: %w", err), f.Close())
		}
		if !waited {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another build: %w", context.Cause(ctx)), f.Close())
		case <-ticker.C:
		}
	}
}
