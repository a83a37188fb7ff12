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

// Ports are below the range from which systems select the ports of outgoing connections. So no
// outgoing connection can use the port of a stopped server, and a restart finds its old address
// free.
const (
	firstPort = 20000
	lastPort  = 29999
)

const loopback = "127.0.0.1"

// ports reserves port numbers among all programs that use this package. A lock on a separate file
// reserves each port, and the kernel releases the lock when its holder dies.
type ports struct {
	mu    sync.Mutex
	locks []*os.File
}

// take reserves a loopback address on which nothing listens.
func (p *ports) take() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// All of the user's programs that reserve ports share this directory.
	dir := filepath.Join(os.TempDir(), "xylem-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("reserve a port: %w", err)
	}
	for range 1000 {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort+1)) //nolint:gosec // Nothing secret.
		lock := tryLock(filepath.Join(dir, port))
		if lock == nil {
			continue
		}
		address := net.JoinHostPort(loopback, port)
		l, err := net.Listen("tcp", address) //nolint:noctx // Returns immediately.
		if err != nil {
			_ = lock.Close()
			continue
		}
		if err := l.Close(); err != nil {
			return "", errors.Join(fmt.Errorf("reserve a port: %w", err), lock.Close())
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
