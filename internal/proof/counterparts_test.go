package proof

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

// Only a member that responds and was not restored proves that it has no leaf claim for a root.
func TestCounterparts(t *testing.T) {
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}
	leafOfRoot := func(change func(*corev1.PersistentVolumeClaim)) *clusterWithSource {
		leaf := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}
		mirror.OriginForRoot("host-id", root).StampLeaf(leaf)
		change(leaf)
		return clusterOf(leaf)
	}
	down := errors.New("connection refused")
	same := func(*corev1.PersistentVolumeClaim) {}
	for name, tc := range map[string]struct {
		live     *clusterWithSource
		restored error
		want     Counterparts
	}{
		"the member has no leaf":                      {live: clusterOf()},
		"the member has a leaf":                       {live: leafOfRoot(same), want: Counterparts{Found: []string{"cluster39"}}},
		"the member has a leaf and was restored":      {live: leafOfRoot(same), restored: down, want: Counterparts{Found: []string{"cluster39"}}},
		"the member has its own claim with that name": {live: leafOfRoot(func(c *corev1.PersistentVolumeClaim) { c.Labels, c.Annotations = nil, nil })},
		"the member has the leaf of an earlier claim with that name": {live: leafOfRoot(func(c *corev1.PersistentVolumeClaim) {
			mirror.OriginForRoot("host-id", &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "older"}}).StampLeaf(c)
		})},
		"the member has no leaf, but may have been restored": {live: clusterOf(), restored: down, want: Counterparts{Unchecked: []string{"cluster39"}}},
		"the member does not respond":                        {live: &clusterWithSource{fails: down}, want: Counterparts{Unchecked: []string{"cluster39"}}},
		"the member has no Link":                             {want: Counterparts{Unchecked: []string{"cluster39"}}},
	} {
		t.Run(name, func(t *testing.T) {
			other := OtherMember{Registration: "cluster39", CheckUnrestored: func(context.Context) error { return tc.restored }}
			if tc.live != nil {
				other.Live = tc.live
			}
			got, err := FindCounterparts(t.Context(), "host-id", root, []OtherMember{other})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("counterparts (-want +got):\n%s", diff)
			}
		})
	}
}

// A canceled context is an error. It must not count as a member's response.
func TestCounterpartsEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := FindCounterparts(ended, "host-id", &corev1.PersistentVolumeClaim{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want Canceled", err)
	}
}
