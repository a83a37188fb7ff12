//go:build !linux

package main

import "os/exec"

// endWithParent does nothing: only Linux reports the end of the parent.
func endWithParent() error { return nil }

// start starts a command.
func start(command *exec.Cmd) error { return command.Start() }

// killRest does nothing: only Linux can adopt orphaned processes.
func killRest() error { return nil }
