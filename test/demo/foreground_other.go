//go:build !unix

package main

import "os"

// takeForeground has nothing to do where there are no process groups.
func takeForeground(*os.File) (giveBack func()) { return func() {} }
