package controlplane_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/xylem-io/xylem/test/controlplane"
)

// orphanEnv is the environment variable that makes this program start a host and wait. Its value is
// the data directory.
const orphanEnv = "CONTROLPLANE_TEST_ORPHAN"

func startAndWaitToBeKilled() int {
	_, err := controlplane.Start(context.Background(), controlplane.Options{Dir: os.Getenv(orphanEnv)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

// startOrphan runs this program again, with a command, so that it starts a host in dir.
func startOrphan(dir string, command ...string) *exec.Cmd {
	GinkgoHelper()
	if runtime.GOOS != "linux" {
		Skip("only Linux kills children with their parent")
	}
	command = append(command, os.Args[0])
	child := exec.Command(command[0], command[1:]...)
	child.Env = append(os.Environ(), orphanEnv+"="+dir)
	child.Stderr = GinkgoWriter
	Expect(child.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	return child
}

// asMake returns a command that runs a program with a shell that has the name of make.
func asMake() []string {
	GinkgoHelper()
	shell := filepath.Join(GinkgoT().TempDir(), "make")
	Expect(os.Symlink("/bin/sh", shell)).To(Succeed())
	return []string{shell, "-c", `"$0" & wait`}
}

// processesOf returns the command lines of processes that mention dir.
func processesOf(dir string) []string {
	GinkgoHelper()
	if runtime.GOOS != "linux" {
		Skip("needs /proc")
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, f := range files {
		// A process may end in the meantime, and a zombie has no command line.
		if content, err := os.ReadFile(f); err == nil && strings.Contains(string(content), dir) {
			found = append(found, strings.ReplaceAll(string(content), "\x00", " "))
		}
	}
	return found
}
