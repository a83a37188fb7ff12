//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// takeForeground makes the demo the terminal's foreground process group by itself, so that
// Ctrl-C reaches it and not make, which would report an error. The returned function gives
// the terminal back.
func takeForeground(terminal *os.File) (giveBack func()) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || before != unix.Getpgrp() {
		return func() {} // no terminal, or in the background of one
	}
	signal.Ignore(syscall.SIGTTOU) // which a process of the background gets for taking it
	if err := unix.Setpgid(0, 0); err != nil {
		return func() {}
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, unix.Getpgrp()); err != nil {
		return func() {}
	}
	return func() {
		_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, before) // the shell takes it anyway
	}
}
