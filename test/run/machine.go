package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/xylem-io/xylem/test/machine"
)

const (
	gib = machine.MiB << 10

	// processMemory is what a process that runs stories needs with its host and two members.
	processMemory = 2500 * machine.MiB
	// otherMemory is what builds and linkers need meanwhile, and must remain for other programs.
	otherMemory = 1 * gib
	// mostProcesses is the number of processes above which two processors have no idle time left.
	mostProcesses = 3

	// freeSpace is what three processes' clusters write to the temporary directory, and what a build
	// with an empty cache writes.
	freeSpace = 6 * gib
)

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
			available/machine.MiB, (otherMemory+processMemory)/machine.MiB)
	}
	return int(n), nil
}

// enoughSpace checks the free disk space for directories.
func enoughSpace(dirs ...string) error {
	for _, dir := range dirs {
		free, err := machine.FreeSpace(dir)
		if err != nil {
			return err
		}
		if free < freeSpace {
			return fmt.Errorf("%d MiB are free in %s, but the builds and clusters need %d MiB: free some space, or set TMPDIR and XDG_CACHE_HOME to other directories",
				free/machine.MiB, dir, freeSpace/machine.MiB)
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
