package index

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
)

// populatorListKind are the VolumePopulators of a cluster, by which populators declare the kinds that they
// handle (github.com/kubernetes-csi/volume-data-source-validator). Few clusters serve them.
var populatorListKind = schema.GroupVersionKind{Group: "populator.storage.k8s.io", Version: "v1beta1", Kind: "VolumePopulatorList"}

// HasPopulator reports whether a populator of the host handles a kind of data source that no provisioner does.
// The populator then binds the claim to the volume of another claim, so no member needs to create it.
func HasPopulator(ctx context.Context, live client.Reader, source mirror.DataSource) (bool, error) {
	if source.IsInOneMember() {
		return false, nil
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(populatorListKind)
	switch err := live.List(ctx, &list); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return false, nil // the host does not serve them, or an earlier role does not allow this
	case err != nil:
		return false, fmt.Errorf("list the host's VolumePopulators: %w", err)
	}
	for _, p := range list.Items {
		group, _, _ := unstructured.NestedString(p.Object, "sourceKind", "group")
		kind, _, _ := unstructured.NestedString(p.Object, "sourceKind", "kind")
		if kind == source.Kind && group == source.Group {
			return true, nil
		}
	}
	return false, nil
}
