//go:build unix && !linux

package main

import "syscall"

// processAttributes keep Ctrl-C from a process, which is ended in order instead.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
