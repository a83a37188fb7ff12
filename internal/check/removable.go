package check

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/wording"
)

// maxNamesListed is the maximum number of object names in a message.
const maxNamesListed = 10

// removalRefusedText is printed when the hook fails, because Helm does not explain in which state it leaves
// the release.
const removalRefusedText = `Nothing was removed. Follow the messages above, then run helm uninstall again. To keep Xylem instead, run:
helm rollback xylem REVISION
REVISION is the last revision that helm history lists. Without REVISION, Helm rolls back to the revision before that one.
`

// CheckRemovable checks that the manager can be removed because no object depends on it anymore.
// Otherwise, the error names the objects that still do, and explains how to release them.
func (c *Checker) CheckRemovable(ctx context.Context) error {
	err := c.runChecks(ctx, []namedCheck{
		{"no cluster is registered", c.checkNoRegistrations},
		{"no volume needs Xylem", c.checkVolumesReleased},
	})
	if err != nil {
		fmt.Fprint(c.Out, removalRefusedText)
	}
	return err
}

// checkNoRegistrations checks that no registrations exist. It also succeeds without the CRD.
func (c *Checker) checkNoRegistrations(ctx context.Context) error {
	var list v1alpha1.ClusterRegistrationList
	if err := c.Client.List(ctx, &list); err != nil {
		if isNotFoundOrUnserved(err) {
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
	slices.Sort(names)
	return fmt.Errorf("found %s. Deregister these clusters first, while the manager can still clean up the members: run kubectl xylem deregister NAME, or kubectl delete clusterregistration NAME. The members' volumes are kept. (To skip this check, run helm uninstall --no-hooks. Everything then stays as it is until you install Xylem again)",
		wording.FirstNames(names, maxNamesListed, ", "))
}

// checkVolumesReleased checks that no host PV has Xylem's finalizer, which no controller would remove once the
// manager is gone.
func (c *Checker) checkVolumesReleased(ctx context.Context) error {
	var names []string
	var list corev1.PersistentVolumeList
	if err := index.ListPages(ctx, c.Client, &list, func() {
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
	slices.Sort(names)
	return fmt.Errorf("found %s. Delete the claims of these volumes. Or abandon the volumes, which keeps their data in the members: kubectl annotate pv NAME %s=true",
		wording.FirstNames(names, maxNamesListed, ", "), v1alpha1.AnnotationAbandon)
}
