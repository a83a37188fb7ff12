package main

import "syscall"

// processAttributes keep Ctrl-C from a process, which is ended in order instead,
// and end it with this program, however this ends.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
