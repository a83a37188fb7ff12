//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// takeForeground makes the demo the terminal's foreground process group. Otherwise, Ctrl-C would
// also reach make, which would report an error. The returned function restores the previous group.
func takeForeground(terminal *os.File) (giveBack func()) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || before != unix.Getpgrp() {
		return func() {} // not a terminal, or the demo runs in the background
	}
	signal.Ignore(syscall.SIGTTOU) // the kernel sends SIGTTOU to a background process that takes the foreground
	if err := unix.Setpgid(0, 0); err != nil {
		return func() {}
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, unix.Getpgrp()); err != nil {
		return func() {}
	}
	return func() {
		_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, before) // if this fails, the shell does it after make
	}
}
