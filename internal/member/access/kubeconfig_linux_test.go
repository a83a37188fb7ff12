package access

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confined is the environment variable that marks the confined child process.
const confined = "XYLEM_TEST_CONFINED"

// touches lists the system calls that open files, start programs or open connections.
var touches = []uint32{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_SENDTO, unix.SYS_READLINKAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2, unix.SYS_MKDIRAT,
}

// confine makes the kernel kill this process, with all its threads, at the first call in touches.
func confine() error {
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // seccomp_data.nr
	for _, call := range touches {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: call},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))) //nolint:gosec // the system call that installs the filter
	if errno != 0 {
		return errno
	}
	return nil
}

// Parsing a kubeconfig does not open files, start processes or dial addresses, regardless of its
// content. The kernel kills the test process if it tries (I8).
func TestParsingTouchesNothing(t *testing.T) {
	switch os.Getenv(confined) {
	case "parse":
		parseAll(t)
		return
	case "touch":
		if err := confine(); err != nil {
			t.Fatal(err)
		}
		_, _ = os.ReadFile("/etc/hostname")
		return
	}
	for what, survives := range map[string]bool{"parse": true, "touch": false} {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestParsingTouchesNothing$")
		command.Env = append(os.Environ(), confined+"="+what)
		out, err := command.CombinedOutput()
		if strings.Contains(string(out), "function not implemented") {
			t.Skip("this kernel does not support seccomp")
		}
		if (err == nil) != survives {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
}

// parseAll parses kubeconfigs that use every field, and variants of them with parts removed,
// duplicated and shuffled.
func parseAll(t *testing.T) {
	t.Helper()
	seeds := []string{
		kubeconfig(server, token),
		kubeconfig(server+"\ncertificate-authority: /etc/passwd\nproxy-url: http://169.254.169.254", "tokenFile: /etc/shadow"),
		kubeconfig(server, "client-certificate: /etc/passwd\nclient-key: /etc/passwd"),
		kubeconfig(server, "exec: {command: /bin/sh, args: [-c, 'touch /tmp/x'], apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"),
		kubeconfig(server, "auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}"),
		kubeconfig("server: unix:///var/run/docker.sock", token),
		kubeconfig("server: https://localhost:1", token+"\nas: admin"),
	}
	random := rand.New(rand.NewPCG(1, 2))
	_, _ = ParseKubeconfig([]byte(seeds[0]), false)
	if err := confine(); err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for range 20_000 {
		a, b := seeds[random.IntN(len(seeds))], seeds[random.IntN(len(seeds))]
		lines := append(strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")...)
		if random.IntN(4) > 0 {
			lines = lines[:len(lines)/2+random.IntN(len(lines)/2)]
		}
		for range random.IntN(3) {
			i, j := random.IntN(len(lines)), random.IntN(len(lines))
			lines[i], lines[j] = lines[j], lines[i]
		}
		if _, err := ParseKubeconfig([]byte(strings.Join(lines, "")), random.IntN(2) == 0); err == nil {
			accepted++
		}
	}
	if _, err := ParseKubeconfig([]byte(seeds[0]), false); err != nil {
		t.Error(err)
	}
	t.Logf("%d kubeconfigs were accepted", accepted)
}
