package manager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// servedPollInterval is the interval at which served checks, and servedTimeout is how long it keeps
	// checking. Liveness probes restart the manager only after a longer time.
	servedPollInterval = time.Second
	servedTimeout      = 20 * time.Second
)

// waitUntilServed waits until the host serves a kind, because its CRD may be applied together with the
// manager.
func waitUntilServed(ctx context.Context, mapper meta.RESTMapper, kind schema.GroupVersionKind) error {
	logged := false
	err := wait.PollUntilContextTimeout(ctx, servedPollInterval, servedTimeout, true, func(context.Context) (bool, error) {
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if !meta.IsNoMatchError(err) {
			return err == nil, err
		}
		if !logged {
			ctrl.Log.Info("waiting until the host serves the kind: its CustomResourceDefinition is not established yet", "kind", kind.String())
			logged = true
		}
		return false, nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if wait.Interrupted(err) {
		return fmt.Errorf("the host does not serve %s. Install its CustomResourceDefinition", kind)
	}
	if err != nil {
		return fmt.Errorf("look up %s in the host: %w", kind, err)
	}
	return nil
}
