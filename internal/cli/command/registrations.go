package command

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Registrations lists the host's registrations. If Xylem is not installed, the error reports this.
func (c *Cluster) Registrations(ctx context.Context) ([]v1alpha1.ClusterRegistration, error) {
	var list v1alpha1.ClusterRegistrationList
	if err := c.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("xylem is not installed in the host at %s: the cluster does not serve ClusterRegistrations. Choose another cluster with --context", c.Config.Host)
		}
		return nil, Explain("the host", c.Config, fmt.Errorf("list registrations: %w", err))
	}
	return list.Items, nil
}
