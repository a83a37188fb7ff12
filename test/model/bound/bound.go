// Package bound defines the bounds of the models' searches as flags with two defaults: one for the full
// search, and one for go test -short. make test-mutants checks which defects only the full search finds
// (mutation.Mutation.Full).
package bound

import (
	"flag"
	"fmt"
	"testing"
)

// Flag defines a flag, and returns a function that returns its value once the flags are parsed.
func Flag(name string, full, short uint, usage string) func() uint {
	value := flag.Uint(name, full, fmt.Sprintf("%s; with -short, the default is %d", usage, short))
	return func() uint {
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
		if testing.Short() && !given {
			return short
		}
		return *value
	}
}
