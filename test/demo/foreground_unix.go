//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// takeForeground makes the demo the terminal's foreground process group, so that Ctrl-C reaches
// it and not make, which would report an error. The returned function undoes that.
func takeForeground(terminal *os.File) (giveBack func()) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || before != unix.Getpgrp() {
		return func() {} // not a terminal, or in its background
	}
	signal.Ignore(syscall.SIGTTOU) // the kernel sends it to a background process that does this
	if err := unix.Setpgid(0, 0); err != nil {
		return func() {}
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, unix.Getpgrp()); err != nil {
		return func() {}
	}
	return func() {
		_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, before) // the shell does the same afterwards
	}
}
