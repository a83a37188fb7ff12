package deregister

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestForgettable(t *testing.T) {
	with := func(annotation string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotation: "{}"}}}
	}
	for name, tc := range map[string]struct {
		there there
		want  bool
	}{
		"no objects and no Leases":               {want: true},
		"Leases with other annotations only":     {there: there{record: with("team"), fence: with("team")}, want: true},
		"a volume":                               {there: there{volumes: 1}},
		"a claim":                                {there: there{claims: 1}},
		"a withdrawn claim in the host's record": {there: there{record: with(v1alpha1.AnnotationWithdrawn)}},
		"a withdrawn claim only in the fence, without a record in the host (I1)": {there: there{fence: with(v1alpha1.AnnotationWithdrawn)}},
		"an abandoned volume": {there: there{record: with(v1alpha1.AnnotationLetGo)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.there.forgettable(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
