//go:build !unix

package main

import "os"

// takeForeground does nothing on systems without process groups.
func takeForeground(*os.File) (giveBack func()) { return func() {} }
