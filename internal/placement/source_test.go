package placement

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// A registration allows populators' sources by listing their kind and group.
func TestRefuseSource(t *testing.T) {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38"}}
	cr.Spec.Storage.DataSources = []v1alpha1.DataSourceKind{{APIGroup: "example.com", Kind: "Image"}}
	m := MemberOfRegistration(cr, nil)
	for name, tc := range map[string]struct {
		source *mirror.DataSource
		reason string
	}{
		"none":                             {nil, ""},
		"a claim":                          {&mirror.DataSource{Kind: "PersistentVolumeClaim", Name: "c"}, ""},
		"a snapshot":                       {&mirror.DataSource{Group: mirror.SnapshotGroup, Kind: mirror.SnapshotKind, Name: "s"}, ""},
		"listed":                           {&mirror.DataSource{Group: "example.com", Kind: "Image", Name: "i"}, ""},
		"a kind that is not listed":        {&mirror.DataSource{Group: "example.com", Kind: "Disk", Name: "i"}, v1alpha1.ReasonDataSourceUnsupported},
		"a group that is not listed":       {&mirror.DataSource{Group: "example.org", Kind: "Image", Name: "i"}, v1alpha1.ReasonDataSourceUnsupported},
		"no group":                         {&mirror.DataSource{Kind: "Image", Name: "i"}, v1alpha1.ReasonDataSourceUnsupported},
		"listed, but in another namespace": {&mirror.DataSource{Group: "example.com", Kind: "Image", Namespace: "victim", Name: "i"}, v1alpha1.ReasonDataSourceUnsupported},
		"a claim in another namespace":     {&mirror.DataSource{Kind: "PersistentVolumeClaim", Namespace: "victim", Name: "c"}, v1alpha1.ReasonDataSourceUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if refusal := m.AnswerRequest(Request{Namespace: Namespace{Name: "shop"}, Source: tc.source}).Refusal; refusal != nil {
				got = refusal.Reason
			}
			if got != tc.reason {
				t.Errorf("refused with %q, want %q", got, tc.reason)
			}
		})
	}
}
