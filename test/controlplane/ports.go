package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Ports are taken from below the range from which systems choose those of
// outgoing connections. So none is lost to a connection that happens to be made
// while its server is stopped, and a restart finds its old address free.
const (
	firstPort = 20000
	lastPort  = 29999
)

const loopback = "127.0.0.1"

// ports hands out port numbers that no other program of ours has: each is held
// by a lock on a file of its own, which dies with its holder.
type ports struct {
	mu    sync.Mutex
	locks []*os.File
}

// take returns an address on loopback that nothing listens on.
func (p *ports) take() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The name is shared by all programs that do this, for all users.
	dir := filepath.Join(os.TempDir(), "xylem-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("reserving a port: %w", err)
	}
	for range 1000 {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort+1)) //nolint:gosec // Nothing secret.
		lock := tryLock(filepath.Join(dir, port))
		if lock == nil {
			continue
		}
		address := net.JoinHostPort(loopback, port)
		l, err := net.Listen("tcp", address) //nolint:noctx // Returns at once.
		if err != nil {
			_ = lock.Close()
			continue
		}
		if err := l.Close(); err != nil {
			return "", errors.Join(fmt.Errorf("reserving a port: %w", err), lock.Close())
		}
		p.locks = append(p.locks, lock)
		return address, nil
	}
	return "", fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

// release releases all ports.
func (p *ports) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.locks {
		_ = l.Close()
	}
	p.locks = nil
}
