package controlplane

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/xylem-io/xylem/test/machine"
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
		p, running := machine.ReadProcess(pid)
		if !running || p.Parent <= 1 {
			return parents
		}
		parents, pid = append(parents, p.Parent), p.Parent
	}
}

func nameOf(pid int) string {
	p, _ := machine.ReadProcess(pid)
	return p.Name
}
