package lifecycle

import (
	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// missesDebugContainers reports whether the leaf, if it is the one recorded on the root, lacks any
// of the root's ephemeral containers.
func (o Observed) missesDebugContainers() bool {
	return o.Root.Annotations[v1alpha1.AnnotationLeafUID] == string(o.Leaf.UID) && len(podspec.MissingDebugContainers(o.Root, o.Leaf)) > 0
}
