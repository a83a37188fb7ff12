package csidriver

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

const needsRight = "mounts need CAP_SYS_ADMIN, which the end-to-end tests on kind have"

func TestPublish(t *testing.T) {
	for name, readOnly := range map[string]bool{"read-write": false, "read-only": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			disk, target := filepath.Join(dir, "disk"), filepath.Join(dir, "pods", "target")
			if err := os.Mkdir(disk, 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(disk, "file"), []byte("data"), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // The kubelet repeats calls.
				if err := publish(disk, target, readOnly); errors.Is(err, unix.EPERM) {
					t.Skip(needsRight)
				} else if err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { _ = unmount(target) })
			if content, err := os.ReadFile(filepath.Join(target, "file")); err != nil || string(content) != "data" {
				t.Errorf("data at the target: %q, %v, want the data on the disk", content, err)
			}
			err := os.WriteFile(filepath.Join(target, "new"), nil, 0o600)
			if got := errors.Is(err, unix.EROFS); got != readOnly {
				t.Errorf("write to the target: %v, want EROFS: %t", err, readOnly)
			}
			if err := unpublish(target); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(target); !os.IsNotExist(err) {
				t.Errorf("stat of the unpublished target: %v, want a not-exist error", err)
			}
			if content, err := os.ReadFile(filepath.Join(disk, "file")); err != nil || string(content) != "data" {
				t.Errorf("data on the disk: %q, %v, want the same as before", content, err)
			}
		})
	}
}

// TestUnpublishKeepsData unpublishes a directory that contains files and is not a mount point.
// The data must survive.
func TestUnpublishKeepsData(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	if err := os.MkdirAll(target, 0o750); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(target, "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unpublish(target); errors.Is(err, unix.EPERM) {
		t.Skip(needsRight)
	} else if err == nil {
		t.Error("a directory with files was removed")
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "kept" {
		t.Errorf("data in the file: %q, %v, want %q", content, err, "kept")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for range 2 { // In the second call, the target does not exist.
		if err := unpublish(target); err != nil {
			t.Error(err)
		}
	}
}
