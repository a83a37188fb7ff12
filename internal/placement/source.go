package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/placement/copysource"
)

// refuseSource returns why the member cannot create a volume from the given kind of source, or nil.
func (m Member) refuseSource(source *datasource.Source) *mirror.Refusal {
	switch {
	case source == nil:
		return nil
	case source.Namespace != "":
		return (&copysource.Source{Of: *source}).Locate(&corev1.PersistentVolumeClaim{}).Refusal
	case source.Placed(), slices.Contains(m.Rules.sources, source.GroupKind()):
		return nil
	}
	return mirror.Refuse(v1alpha1.ReasonDataSourceUnsupported, "the data source of the claim is %s, but ClusterRegistration %q does not list that kind. Use a claim or a snapshot as the data source, or ask an admin to list the kind in spec.storage.dataSources",
		source, m.Registration)
}
