package machine

import (
	"os"
	"os/exec"
	"testing"
)

func TestProcesses(t *testing.T) {
	child := exec.CommandContext(t.Context(), "cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if p := Processes()[child.Process.Pid]; p.Name != "cat" || p.Parent != os.Getpid() {
		t.Errorf("the child is %+v", p)
	}
	if threads := Threads(child.Process.Pid); len(threads) == 0 || threads[0].Name != "cat" {
		t.Errorf("the child's threads are %+v", threads)
	}
	before, _ := ReadProcess(os.Getpid())
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, running := ReadProcess(child.Process.Pid); running {
		t.Error("the child is still a process after it has ended")
	}
	for end := before.CPU + 5*tick; ; { // work until the time is visible
		if p, _ := ReadProcess(os.Getpid()); p.CPU >= end {
			break
		}
	}
}

func TestResources(t *testing.T) {
	if n := AvailableMemory(); n < MiB {
		t.Errorf("%d bytes of memory are available", n)
	}
	if n, err := FreeSpace(t.TempDir()); n == 0 || err != nil {
		t.Errorf("%d bytes are free, %v", n, err)
	}
	if _, err := FreeSpace("/does/not/exist"); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}
