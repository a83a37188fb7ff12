//go:build !unix

package kubebin

import "context"

// lock does nothing where there is no flock: renames keep the result whole, and
// the price of two builds at once is that both do the work.
func lock(context.Context, string, func()) (func(), error) {
	return func() {}, nil
}
