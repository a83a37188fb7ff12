package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
)

// namedAtMost is how many names a message has.
const namedAtMost = 10

// refused is what Helm does not say of a release whose hook has failed.
const refused = `Nothing was removed. Do what the lines above say, then run helm uninstall again. To keep Xylem instead:
helm rollback xylem REVISION, with the last revision that helm history shows (without one, Helm goes back one further).
`

// Removable reports whether the manager may go: nothing waits for it any more. An
// error says what does, and how to end that.
func (c *Checker) Removable(ctx context.Context) error {
	err := c.all(ctx, []question{
		{"no cluster is registered", c.unregistered},
		{"no volume needs Xylem", c.released},
	})
	if err != nil {
		fmt.Fprint(c.Out, refused)
	}
	return err
}

// unregistered holds as well where the CRD is gone, and every registration with it.
func (c *Checker) unregistered(ctx context.Context) error {
	var list v1alpha1.ClusterRegistrationList
	if err := c.Client.List(ctx, &list); err != nil {
		if gone(err) {
			return nil
		}
		return fmt.Errorf("list the registrations: %w", err)
	}
	var names []string
	for _, r := range list.Items {
		names = append(names, r.Name)
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("these are: %s. Deregister them first, while the manager can clean up in them: kubectl xylem deregister NAME, or kubectl delete clusterregistration NAME. Their volumes are kept. (To skip that, run helm uninstall --no-hooks; everything then stays as it is until Xylem is installed again)",
		enumerate(names))
}

// released holds when no volume of the host has Xylem's finalizer, which nobody
// would remove.
func (c *Checker) released(ctx context.Context) error {
	var names []string
	var list corev1.PersistentVolumeList
	if err := index.Pages(ctx, c.Client, &list, func() {
		for _, pv := range list.Items {
			if slices.Contains(pv.Finalizers, v1alpha1.FinalizerLeafVolume) {
				names = append(names, pv.Name)
			}
		}
	}); err != nil {
		return fmt.Errorf("list the host's volumes: %w", err)
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("these do: %s. Delete their claims, or abandon the volumes and keep their data: kubectl annotate pv NAME %s=true",
		enumerate(names), v1alpha1.AnnotationAbandon)
}

func enumerate(names []string) string {
	slices.Sort(names)
	if len(names) > namedAtMost {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namedAtMost], ", "), len(names)-namedAtMost)
	}
	return strings.Join(names, ", ")
}
