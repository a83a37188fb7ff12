//go:build !unix

package kubebin

import "context"

// lock does nothing on platforms without flock. Two concurrent builds waste work, but because they
// rename complete files, the result is correct.
func lock(context.Context, string, func()) (func(), error) {
	return func() {}, nil
}
