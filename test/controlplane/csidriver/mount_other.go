//go:build !linux

package csidriver

import "errors"

// mount needs Linux, as kubelets do here.
func mount(string, string, bool) error { return errors.ErrUnsupported }

func unmount(string) error { return errors.ErrUnsupported }
