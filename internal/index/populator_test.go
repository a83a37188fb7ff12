package index

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
)

// populatorsOf serves live lists of VolumePopulators.
type populatorsOf struct {
	client.Reader
	kinds []schema.GroupKind
	err   error
}

func (p populatorsOf) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	list := into.(*unstructured.UnstructuredList)
	for _, k := range p.kinds {
		list.Items = append(list.Items, unstructured.Unstructured{Object: map[string]any{"sourceKind": map[string]any{"group": k.Group, "kind": k.Kind}}})
	}
	return p.err
}

func TestPopulated(t *testing.T) {
	image := schema.GroupKind{Group: "cdi.kubevirt.io", Kind: "VolumeImportSource"}
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		live populatorsOf
		want bool
		err  error
	}{
		"a populator handles the kind":                 {live: populatorsOf{kinds: []schema.GroupKind{{Kind: "Other"}, image}}, want: true},
		"a populator handles this kind of another API": {live: populatorsOf{kinds: []schema.GroupKind{{Group: "example.com", Kind: image.Kind}}}},
		"the host does not serve VolumePopulators":     {live: populatorsOf{err: &meta.NoKindMatchError{}}},
		"an earlier role does not allow the list":      {live: populatorsOf{err: apierrors.NewForbidden(schema.GroupResource{}, "", nil)}},
		"the host does not respond":                    {live: populatorsOf{err: down}, err: down},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := HasPopulator(t.Context(), tc.live, mirror.DataSource{Group: image.Group, Kind: image.Kind, Name: "disk"})
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %t, %v, want %t, %v", got, err, tc.want, tc.err)
			}
		})
	}
}
