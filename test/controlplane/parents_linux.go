package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// parentPoll is the interval for checking whether the programs that run this one still exist.
const parentPoll = time.Second

// runners are the names of programs that wait for the programs that they run.
var runners = []string{"make", "gmake", "ginkgo", "go"}

var parentsFollowed sync.Once

// followParents terminates this program with SIGTERM, so that it can clean up, when a program that
// runs it no longer exists: make, ginkgo or go, or a shell between them. SIGKILL ends only one of
// them. Nobody would read the results of the others, and they would run until all tests end.
func followParents() {
	parentsFollowed.Do(func() {
		parents := parentsOf(os.Getpid())
		last := len(parents)
		for last > 0 && !slices.Contains(runners, nameOf(parents[last-1])) {
			last--
		}
		if parents = parents[:last]; len(parents) == 0 {
			return
		}
		go func() {
			for range time.Tick(parentPoll) {
				now := parentsOf(os.Getpid())
				if len(now) < len(parents) || !slices.Equal(now[:len(parents)], parents) {
					_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
					return
				}
			}
		}()
	})
}

// parentsOf returns the IDs of a process's parents, nearest first, without init.
func parentsOf(pid int) []int {
	var parents []int
	for {
		_, fields := statOf(fmt.Sprintf("/proc/%d/stat", pid))
		if len(fields) < 2 {
			return parents
		}
		parent, err := strconv.Atoi(fields[1])
		if err != nil || parent <= 1 {
			return parents
		}
		parents, pid = append(parents, parent), parent
	}
}

func nameOf(pid int) string {
	name, _ := statOf(fmt.Sprintf("/proc/%d/stat", pid))
	return name
}

// statOf reads a stat file of /proc. The format is "pid (name) state parent …", and the name may
// contain parentheses. The fields begin with the state. There are none if the process ended.
func statOf(path string) (name string, fields []string) {
	content, err := os.ReadFile(path) //nolint:gosec // The kernel's.
	begin, end := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	if err != nil || begin < 0 || end < begin {
		return "", nil
	}
	return string(content[begin+1 : end]), strings.Fields(string(content[end+1:]))
}
