package oracle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	leafUID = "11111111-1111-4111-8111-111111111111"
	rootUID = "22222222-2222-4222-8222-222222222222"
	hostID  = "33333333-3333-4333-8333-333333333333"
	oneID   = "44444444-4444-4444-8444-444444444444"
	run     = "fault-create-x-1"
)

func TestNormalise(t *testing.T) {
	object := func(fields map[string]any) []Object {
		fields["kind"] = "PersistentVolumeClaim"
		return []Object{{Cluster: "host", Unstructured: unstructured.Unstructured{Object: fields}}}
	}
	for name, tt := range map[string]struct {
		objects []Object
		want    []string
	}{
		"fields that differ from run to run are omitted": {
			object(map[string]any{
				"metadata": map[string]any{
					"name": "data", "uid": rootUID, "resourceVersion": "17", "generation": int64(2), "creationTimestamp": "2026-01-02T03:04:05Z",
					"managedFields": []any{map[string]any{"manager": "x"}},
				},
				"status": map[string]any{"observedGeneration": int64(3)},
			}),
			[]string{
				"host PersistentVolumeClaim data",
				`host PersistentVolumeClaim data kind="PersistentVolumeClaim"`,
				`host PersistentVolumeClaim data metadata.name="data"`,
			},
		},
		"UIDs are replaced with their objects": {
			object(map[string]any{"metadata": map[string]any{"name": "data", "uid": rootUID}, "of": rootUID, "in": oneID, "gone": leafUID, "pv": "pvc-" + leafUID}),
			[]string{
				"host PersistentVolumeClaim data",
				`host PersistentVolumeClaim data gone="uid(?)"`,
				`host PersistentVolumeClaim data in="id(cluster38)"`,
				`host PersistentVolumeClaim data kind="PersistentVolumeClaim"`,
				`host PersistentVolumeClaim data metadata.name="data"`,
				`host PersistentVolumeClaim data of="uid(host PersistentVolumeClaim data)"`,
				`host PersistentVolumeClaim data pv="pvc-uid(?)"`,
			},
		},
		"times, addresses and the namespace are normalized": {
			object(map[string]any{"metadata": map[string]any{"name": "data"}, "at": "2026-01-02T03:04:05.123Z", "ip": "10.64.0.3", "ns": run + "/data"}),
			[]string{
				"host PersistentVolumeClaim data",
				`host PersistentVolumeClaim data at="<time>"`,
				`host PersistentVolumeClaim data ip="<address>"`,
				`host PersistentVolumeClaim data kind="PersistentVolumeClaim"`,
				`host PersistentVolumeClaim data metadata.name="data"`,
				`host PersistentVolumeClaim data ns="<namespace>/data"`,
			},
		},
		"the order of sets is ignored": {
			object(map[string]any{"metadata": map[string]any{"name": "data"}, "conditions": []any{
				map[string]any{"type": "B", "status": "True"}, map[string]any{"type": "A", "status": "False"},
			}}),
			[]string{
				"host PersistentVolumeClaim data",
				`host PersistentVolumeClaim data conditions[A].status="False"`,
				`host PersistentVolumeClaim data conditions[A].type="A"`,
				`host PersistentVolumeClaim data conditions[B].status="True"`,
				`host PersistentVolumeClaim data conditions[B].type="B"`,
				`host PersistentVolumeClaim data kind="PersistentVolumeClaim"`,
				`host PersistentVolumeClaim data metadata.name="data"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Normalise(tt.objects, run, map[string]string{"host": hostID, "cluster38": oneID})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
