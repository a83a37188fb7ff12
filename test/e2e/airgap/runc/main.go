// Command runc is an OCI runtime for machines that lack a capability that privileged containers
// request, such as CAP_SYS_RESOURCE. It removes unavailable capabilities from the request and
// executes the real runc, which would otherwise reject the whole container. It never adds
// anything.
//
//	dockerd --add-runtime lesser=PATH --default-runtime lesser
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// runcEnv is the environment variable with the path of the real runc. Without it, the command
// searches PATH.
const runcEnv = "LESSER_RUNC"

// capabilities lists the capabilities of capability.h in numerical order.
var capabilities = strings.Fields(`
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runc with fewer capabilities:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("read the capabilities of this machine: %w", err)
	}
	held, err := bounding(string(status))
	if err != nil {
		return err
	}
	for i, arg := range args[:max(len(args)-1, 0)] {
		switch arg {
		case "--bundle", "-b":
			err = rewrite(filepath.Join(args[i+1], "config.json"), held, "process")
		case "--process", "-p":
			err = rewrite(args[i+1], held)
		}
		if err != nil {
			return err
		}
	}
	runc := os.Getenv(runcEnv)
	if runc == "" {
		if runc, err = exec.LookPath("runc"); err != nil {
			return fmt.Errorf("PATH contains no runc; set %s to its path: %w", runcEnv, err)
		}
	}
	//nolint:gosec // The runtime that the engine would have executed itself, with its arguments.
	return syscall.Exec(runc, append([]string{runc}, args...), os.Environ())
}

// bounding returns the names of the capabilities in the bounding set of a process, from its
// status file.
func bounding(status string) ([]string, error) {
	for line := range strings.Lines(status) {
		digits, found := strings.CutPrefix(line, "CapBnd:")
		if !found {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("read the bounding set: %w", err)
		}
		var held []string
		for i, name := range capabilities {
			if set&(1<<i) != 0 {
				held = append(held, "CAP_"+name)
			}
		}
		return held, nil
	}
	return nil, errors.New("the kernel reports no bounding set")
}

// rewrite removes all capabilities that are not in held from a process in a JSON file. The path
// lists the keys that lead to the process.
func rewrite(file string, held []string, path ...string) error {
	content, err := os.ReadFile(file) //nolint:gosec // Named by the engine.
	if err != nil {
		return fmt.Errorf("read the container's request: %w", err)
	}
	lesser, err := without(content, held, path...)
	if err != nil {
		return fmt.Errorf("read the container's request %s: %w", file, err)
	}
	if err := os.WriteFile(file, lesser, 0o600); err != nil { //nolint:gosec // As above.
		return fmt.Errorf("write the container's request: %w", err)
	}
	return nil
}

func without(content []byte, held []string, path ...string) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber() // A float cannot represent every limit exactly.
	var spec map[string]any
	if err := decoder.Decode(&spec); err != nil {
		return nil, err
	}
	process := spec
	for _, key := range path {
		process, _ = process[key].(map[string]any)
	}
	sets, _ := process["capabilities"].(map[string]any)
	for name, set := range sets {
		asked, _ := set.([]any)
		sets[name] = slices.DeleteFunc(asked, func(c any) bool {
			s, _ := c.(string)
			return !slices.Contains(held, s)
		})
	}
	return json.Marshal(spec)
}
