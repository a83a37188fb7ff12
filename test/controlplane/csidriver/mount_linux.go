package csidriver

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// mount bind-mounts the directory at the target.
func mount(dir, target string, readOnly bool) error {
	if err := unix.Mount(dir, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", dir, target, err)
	}
	if !readOnly {
		return nil
	}
	// The kernel applies this flag to a bind mount only when it is remounted.
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return errors.Join(fmt.Errorf("make %s read-only: %w", target, err), unmount(target))
	}
	return nil
}

// unmount removes the mount at the target. It succeeds if nothing is mounted.
func unmount(target string) error {
	if err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
