// Package machine reads which processes and resources the machine has, for tests. Most of it needs Linux's
// /proc: elsewhere, there are no processes, and resources are unlimited.
package machine

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// MiB is a mebibyte, in bytes.
const MiB = 1 << 20

// tick is the unit of CPU time in /proc/PID/stat (proc(5)), on all platforms that Go supports.
const tick = time.Second / 100

// Process is a process, or a thread.
type Process struct {
	Name string
	// State is the letter that ps shows, such as T for a stopped process.
	State  string
	Parent int
	// CPU is the time that the process has used, and that its children had used that have ended and that
	// it has waited for.
	CPU time.Duration
}

// ReadProcess reads a process. It returns false if the process has ended.
func ReadProcess(pid int) (Process, bool) { return readStat(fmt.Sprintf("/proc/%d/stat", pid)) }

// Threads returns the threads of a process.
func Threads(pid int) []Process {
	var threads []Process
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		if thread, running := readStat(path); running {
			threads = append(threads, thread)
		}
	}
	return threads
}

func readStat(path string) (Process, bool) {
	content, err := os.ReadFile(path) //nolint:gosec // the kernel's
	// The format is "pid (name) state ppid …", and the name may contain parentheses. utime, stime, cutime
	// and cstime are the fields 14 to 17.
	opening, closing := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	if err != nil || opening < 0 || closing < opening {
		return Process{}, false
	}
	fields := strings.Fields(string(content[closing+1:]))
	if len(fields) < 15 {
		return Process{}, false
	}
	p := Process{Name: string(content[opening+1 : closing]), State: fields[0]}
	if p.Parent, err = strconv.Atoi(fields[1]); err != nil {
		return Process{}, false
	}
	for _, field := range fields[11:15] {
		n, _ := strconv.ParseInt(field, 10, 64)
		p.CPU += time.Duration(n) * tick
	}
	return p, true
}

// Processes returns all processes by their IDs.
func Processes() map[int]Process {
	all := map[int]Process{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if p, running := ReadProcess(pid); running {
			all[pid] = p
		}
	}
	return all
}

// AvailableMemory returns the memory in bytes that programs can use, with swapping if the machine swaps.
func AvailableMemory() int64 {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	var available int64
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line) // such as "MemAvailable: 1024 kB"
		if len(fields) == 3 && (fields[0] == "MemAvailable:" || fields[0] == "SwapFree:") {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			available += kib << 10
		}
	}
	return available
}

// FreeSpace returns the free disk space in bytes in a directory.
func FreeSpace(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("read the free space in %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:gosec,unconvert // no disk is that large, and the types differ between platforms
}
