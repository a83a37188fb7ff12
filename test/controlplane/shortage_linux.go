package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

const megabyte = 1 << 20

const (
	// clusterDisk is the disk space that a cluster needs, in MB. When it starts, it uses 124 MB,
	// because etcd reserves 64 MB for each of two log files. The rest is for the first stories.
	clusterDisk = 170
	// clusterMemory is the memory that a cluster needs, in MB. Three idle clusters use 1,360 MB.
	clusterMemory = 450
	// fullDisk is the free space below which a disk is full, in MB.
	fullDisk = 1
)

// requireResources returns an error if the machine has too little disk space or memory for more
// clusters with their data in dir.
func requireResources(dir string, clusters int) error {
	if free, err := freeDisk(dir); err == nil && free < clusters*clusterDisk {
		return fmt.Errorf("no space left in %s (%d MB free, the clusters need %d MB): free some, or set TMPDIR", dir, free, clusters*clusterDisk)
	}
	if free, err := freeMemory(); err == nil && free < clusters*clusterMemory {
		return fmt.Errorf("too little memory (%d MB available, the clusters need %d MB): free some, or run fewer tests at a time",
			free, clusters*clusterMemory)
	}
	return nil
}

// shortage returns what the machine lacks after a process of a cluster failed, or nil. ended is why
// the process ended.
func shortage(dir string, ended error) error {
	if free, err := freeDisk(dir); err == nil && free < fullDisk {
		return fmt.Errorf("no space left in %s (%d MB free): free some, or set TMPDIR", dir, free)
	}
	var exit *exec.ExitError
	if !errors.As(ended, &exit) {
		return nil
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return errors.New("it was killed, probably because the machine has too little memory: free some, or run fewer tests at a time")
	}
	return nil
}

// freeDisk returns the free space in dir, in MB.
func freeDisk(dir string) (int, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("read the free space of %s: %w", dir, err)
	}
	return int(s.Bavail) * int(s.Bsize) / megabyte, nil //nolint:gosec // No disk is that large.
}

// freeMemory returns the memory that is available without and with swapping, in MB.
func freeMemory() (int, error) {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("read the free memory: %w", err)
	}
	free := 0
	for line := range bytes.Lines(content) {
		f := strings.Fields(string(line)) // such as "MemAvailable: 1024 kB"
		if len(f) == 3 && (f[0] == "MemAvailable:" || f[0] == "SwapFree:") {
			kilobytes, err := strconv.Atoi(f[1])
			if err != nil {
				return 0, fmt.Errorf("read the free memory: %w", err)
			}
			free += kilobytes / 1024
		}
	}
	return free, nil
}
