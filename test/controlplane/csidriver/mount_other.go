//go:build !linux

package csidriver

import "errors"

// mount returns an error: the node service needs Linux, as do the tests' kubelets.
func mount(string, string, bool) error { return errors.ErrUnsupported }

func unmount(string) error { return errors.ErrUnsupported }
