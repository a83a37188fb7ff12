//go:build !unix

package kubebin

import "context"

// lock does nothing on platforms without flock. Renames keep the result complete, and two
// concurrent builds only waste work.
func lock(context.Context, string, func()) (func(), error) {
	return func() {}, nil
}
