package controlplane

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/xylem-io/xylem/test/machine"
)

const (
	// clusterDisk is the disk space that a cluster needs, in bytes. When it starts, it uses 124 MiB,
	// because etcd reserves 64 MB for each of two log files. The rest is for the first stories.
	clusterDisk = 170 * machine.MiB
	// clusterMemory is the memory that a cluster needs, in bytes. Three idle clusters use 1,360 MiB.
	clusterMemory = 450 * machine.MiB
	// fullDisk is the free space below which a disk is full, in bytes.
	fullDisk = machine.MiB
)

// requireResources returns an error if the machine has too little disk space or memory for more
// clusters with their data in dir.
func requireResources(dir string, clusters int) error {
	disk, memory := int64(clusters)*clusterDisk, int64(clusters)*clusterMemory
	if free, err := machine.FreeSpace(dir); err == nil && free < disk {
		return fmt.Errorf("no space left in %s (%d MiB free, the clusters need %d MiB): free some, or set TMPDIR", dir, free/machine.MiB, disk/machine.MiB)
	}
	if free := machine.AvailableMemory(); free < memory {
		return fmt.Errorf("too little memory (%d MiB available, the clusters need %d MiB): free some, or run fewer tests at a time",
			free/machine.MiB, memory/machine.MiB)
	}
	return nil
}

// shortage returns what the machine lacks after a process of a cluster failed, or nil. ended is why
// the process ended.
func shortage(dir string, ended error) error {
	if free, err := machine.FreeSpace(dir); err == nil && free < fullDisk {
		return fmt.Errorf("no space left in %s (%d MiB free): free some, or set TMPDIR", dir, free/machine.MiB)
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
