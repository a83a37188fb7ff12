package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const (
	mib = 1 << 20
	gib = 1 << 30

	// processMemory is what a process that runs stories needs with its host and two members.
	processMemory = 2500 * mib
	// otherMemory is what builds and linkers need meanwhile, and must remain for other programs.
	otherMemory = 1 * gib
	// mostProcesses is the number of processes above which two processors have no idle time left.
	mostProcesses = 3

	// freeSpace is what three processes' clusters write to the temporary directory, and what a build
	// with an empty cache writes.
	freeSpace = 6 * gib
)

// availableMemory returns the memory in bytes that programs can use without swapping.
func availableMemory() int64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return math.MaxInt64 // not Linux
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				break
			}
			return kib << 10
		}
	}
	return math.MaxInt64
}

// storyProcesses returns how many processes can run stories in the available memory.
func storyProcesses(available int64) (int, error) {
	if set := os.Getenv("STORIES_PROCESSES"); set != "" {
		n, err := strconv.Atoi(set)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("STORIES_PROCESSES is %q, but must be a number of processes, such as 2", set)
		}
		return n, nil
	}
	n := min((available-otherMemory)/processMemory, mostProcesses)
	if n < 1 {
		return 0, fmt.Errorf("%d MiB of memory are available, but the test clusters need %d MiB: stop other programs, or set STORIES_PROCESSES=1 to try nevertheless",
			available/mib, (otherMemory+processMemory)/mib)
	}
	return int(n), nil
}

// enoughSpace checks the free disk space for directories.
func enoughSpace(dirs ...string) error {
	for _, dir := range dirs {
		var fs syscall.Statfs_t
		if err := syscall.Statfs(dir, &fs); err != nil {
			return fmt.Errorf("read the free space in %s: %w", dir, err)
		}
		if free := int64(fs.Bavail) * int64(fs.Bsize); free < freeSpace { //nolint:gosec // sizes of disks
			return fmt.Errorf("%d MiB are free in %s, but the builds and clusters need %d MiB: free some space, or set TMPDIR and XDG_CACHE_HOME to other directories",
				free/mib, dir, freeSpace/mib)
		}
	}
	return nil
}

// load describes the machine's load.
func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "load unknown"
	}
	average, _, _ := strings.Cut(string(content), " ")
	return "load " + average
}
