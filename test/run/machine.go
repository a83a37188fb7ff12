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
	// mostProcesses and mostFleets are the numbers of processes that run stories alone, and of processes and
	// other suites together, above which two processors have no idle time left.
	mostProcesses = 3
	mostFleets    = 4

	// freeSpace is what three processes' clusters write to the temporary directory, and what a build
	// with an empty cache writes.
	freeSpace = 6 * gib
)

// share is how the available memory is used.
type share struct {
	// alone is how many processes run stories if nothing else runs.
	alone int
	// stories and suites are how many processes run stories, and how many other suites run, at the same
	// time. Without suites, the memory is sufficient for only one of both.
	stories, suites int
}

// shareOf returns how to use the available memory. The variable STORIES_PROCESSES sets the number of
// processes that run stories.
func shareOf(available int64) (share, error) {
	fleets := int(min((available-otherMemory)/processMemory, mostFleets))
	s := share{alone: min(fleets, mostProcesses), stories: (fleets + 1) / 2, suites: fleets / 2}
	if set := os.Getenv("STORIES_PROCESSES"); set != "" {
		n, err := strconv.Atoi(set)
		if err != nil || n < 1 {
			return share{}, fmt.Errorf("STORIES_PROCESSES is %q, but must be a number of processes, such as 2", set)
		}
		return share{alone: n, stories: n, suites: max(0, min(fleets-n, s.suites))}, nil
	}
	if fleets < 1 {
		return share{}, fmt.Errorf("%d MiB of memory are available, but the test clusters need %d MiB: stop other programs, or set STORIES_PROCESSES=1 to try nevertheless",
			available/machine.MiB, (otherMemory+processMemory)/machine.MiB)
	}
	return s, nil
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
