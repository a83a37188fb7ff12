package mirror_test

import (
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
)

var update = flag.Bool("update", false, "regenerate FIELDS.md")

const fieldsDoc = "FIELDS.md"

func TestFieldsDoc(t *testing.T) {
	want := fields.RenderMarkdown(Tables())
	if *update {
		if err := os.WriteFile(fieldsDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	has, err := os.ReadFile(fieldsDoc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(has)); diff != "" {
		t.Errorf("%s differs from the tables: run this test with -update (-want +got):\n%s", fieldsDoc, diff)
	}
}

func TestEveryFieldIsDecided(t *testing.T) {
	for _, table := range Tables() {
		t.Run(table.Title, func(t *testing.T) {
			undecided, stale := table.FindGaps()
			for _, path := range undecided {
				t.Errorf("no decision on %s.%s", table.PathPrefix, path)
			}
			for _, path := range stale {
				t.Errorf("the entry %s matches no field, or a field that another entry also matches", path)
			}
			for _, f := range table.Fields {
				if f.Why == "" || strings.ContainsAny(f.Why, "|\n") {
					t.Errorf("the reason for %s cannot be a table cell: %q", f.Path, f.Why)
				}
			}
		})
	}
}

// TestGaps checks that Gaps finds gaps, because TestEveryFieldIsDecided relies on it.
func TestGaps(t *testing.T) {
	type inner struct {
		A string `json:"a"`
		B string `json:"b"`
	}
	type Embedded struct {
		E string `json:"e"`
	}
	type outer struct {
		Embedded `json:",inline"`
		One      inner             `json:"one"`
		Many     []inner           `json:"many,omitempty"`
		Pointer  *inner            `json:"pointer,omitempty"`
		Time     metav1.Time       `json:"time,omitempty"`
		Map      map[string]string `json:"map,omitempty"`
		Hidden   string            `json:"-"`
	}
	cases := map[string]struct {
		paths            []string
		undecided, stale []string
	}{
		"one decision for the whole struct": {paths: []string{"e", "one", "many", "pointer", "time", "map"}},
		"one decision for each field":       {paths: []string{"e", "one.a", "one.b", "many[].a", "many[].b", "pointer.a", "pointer.b", "time", "map"}},
		"a new top-level field": {
			paths:     []string{"e", "one", "many", "time", "map"},
			undecided: []string{"pointer"},
		},
		"a new embedded field": {
			paths:     []string{"one", "many", "pointer", "time", "map"},
			undecided: []string{"e"},
		},
		"new nested fields": {
			paths:     []string{"e", "one.a", "many[].b", "pointer.a", "time", "map"},
			undecided: []string{"one.b", "many[].a", "pointer.b"},
		},
		"a removed field": {
			paths: []string{"e", "one", "many", "pointer", "time", "map", "old", "one.c"},
			stale: []string{"old", "one.c"},
		},
		"an entry for a field nested in a decided one": {
			paths: []string{"e", "one", "one.a", "many", "pointer", "time", "map"},
			stale: []string{"one.a"},
		},
		"two entries for one field": {
			paths: []string{"e", "e", "one", "many", "pointer", "time", "map"},
			stale: []string{"e", "e"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			table := fields.Table{StructType: reflect.TypeFor[outer]()}
			for _, path := range c.paths {
				table.Fields = append(table.Fields, fields.Field{Path: path, Decision: fields.Keep, Why: "why"})
			}
			undecided, stale := table.FindGaps()
			if diff := cmp.Diff(c.undecided, undecided); diff != "" {
				t.Errorf("undecided (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.stale, stale); diff != "" {
				t.Errorf("stale (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTablesMatchTranslation sets one field at a time, and compares its translation with the table.
func TestTablesMatchTranslation(t *testing.T) {
	t.Run("metadata", func(t *testing.T) {
		checkTable(t, fields.MetaTable, func(meta *metav1.ObjectMeta) (*metav1.ObjectMeta, error) {
			leaf, err := podspec.TranslatePod(&corev1.Pod{ObjectMeta: *meta}, mirrortest.Member)
			if err != nil {
				return nil, err
			}
			return &leaf.ObjectMeta, nil
		})
	})
	t.Run("pod", func(t *testing.T) {
		checkTable(t, podspec.PodFieldTable, func(spec *corev1.PodSpec) (*corev1.PodSpec, error) {
			leaf, err := podspec.TranslatePod(&corev1.Pod{Spec: *spec}, mirrortest.Member)
			if err != nil {
				return nil, err
			}
			refs.PointAtCopies(mirrortest.ConfigCopies, leaf)
			// This is the leaf after root_pod has added the ephemeral container.
			if root := (&corev1.Pod{Spec: *spec}); len(spec.EphemeralContainers) > 0 {
				leaf, err = podspec.AddDebugContainer(root, leaf, spec.EphemeralContainers[0].Name, func(pod *corev1.Pod) { refs.PointAtCopies(mirrortest.ConfigCopies, pod) })
				if err != nil {
					return nil, err
				}
			}
			return &leaf.Spec, nil
		})
	})
	t.Run("pod status", func(t *testing.T) {
		checkTable(t, podstatus.PodStatusFieldTable, func(status *corev1.PodStatus) (*corev1.PodStatus, error) {
			root := &corev1.Pod{Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "x"}},
				Containers:     []corev1.Container{{Name: "x"}},

				EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "x"}}},
			}}
			shown := podstatus.TranslatePodStatus(root, &corev1.Pod{Status: *status}, mirrortest.Member)
			return &shown, nil
		})
	})
	t.Run("claim", func(t *testing.T) {
		checkTable(t, pvc.ClaimFieldTable, func(spec *corev1.PersistentVolumeClaimSpec) (*corev1.PersistentVolumeClaimSpec, error) {
			leaf, err := pvc.TranslateClaim(&corev1.PersistentVolumeClaim{Spec: *spec}, nil, mirrortest.Member)
			if err != nil {
				return nil, err
			}
			return &leaf.Spec, nil
		})
	})
	t.Run("claim status", func(t *testing.T) {
		checkTable(t, pvc.ClaimStatusFieldTable, func(status *corev1.PersistentVolumeClaimStatus) (*corev1.PersistentVolumeClaimStatus, error) {
			root, leaf := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{Status: *status}
			root.Status.Phase, leaf.Status.Phase = corev1.ClaimBound, corev1.ClaimBound
			shown := pvc.TranslateClaimStatus(root, leaf)
			return &shown, nil
		})
	})
	t.Run("volume", func(t *testing.T) {
		checkTable(t, hostpv.VolumeFieldTable, func(spec *corev1.PersistentVolumeSpec) (*corev1.PersistentVolumeSpec, error) {
			host := hostpv.TranslateVolume(&corev1.PersistentVolume{Spec: *spec}, &corev1.PersistentVolumeClaim{}, corev1.PersistentVolumeReclaimRetain, mirrortest.Member)
			return &host.Spec, nil
		})
	})
	t.Run("service", func(t *testing.T) {
		checkTable(t, mirror.ServiceFieldTable, func(spec *corev1.ServiceSpec) (*corev1.ServiceSpec, error) {
			leaf, refusal := mirror.TranslateService(&corev1.Service{Spec: *spec}, mirrortest.Member)
			if refusal != nil {
				return nil, refusal
			}
			return &leaf.Spec, nil
		})
	})
	t.Run("endpoint", func(t *testing.T) {
		checkTable(t, mirror.EndpointFieldTable, func(endpoint *discoveryv1.Endpoint) (*discoveryv1.Endpoint, error) {
			return new(mirror.TranslateEndpoint(endpoint, mirrortest.Member)), nil
		})
	})
	t.Run("snapshot", func(t *testing.T) {
		checkTable(t, snapshot.SnapshotFieldTable, func(spec *snapshotv1.VolumeSnapshotSpec) (*snapshotv1.VolumeSnapshotSpec, error) {
			return &snapshot.TranslateSnapshot(&snapshotv1.VolumeSnapshot{Spec: *spec}, "x", mirrortest.Member).Spec, nil
		})
	})
	t.Run("snapshot status", func(t *testing.T) {
		checkTable(t, snapshot.ContentStatusFieldTable, func(status *snapshotv1.VolumeSnapshotContentStatus) (*snapshotv1.VolumeSnapshotContentStatus, error) {
			leaf := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: status}
			host := &snapshotv1.VolumeSnapshotContent{Status: &snapshotv1.VolumeSnapshotContentStatus{}}
			return snapshot.MirroredStatus(host, leaf, mirrortest.Member), nil
		})
	})
}

func checkTable[T any](t *testing.T, table fields.Table, translate func(*T) (*T, error)) {
	t.Helper()
	for _, f := range table.Fields {
		t.Run(f.Path, func(t *testing.T) {
			from := new(T)
			field := mirrortest.FieldAtPath(t, reflect.ValueOf(from).Elem(), f.Path)
			(&mirrortest.Filler{}).FillValue(field)
			if field.IsZero() {
				t.Fatal("the test did not set the field")
			}
			to, err := translate(from)
			if f.Decision == fields.Refuse {
				checkRefused(t, table.PathPrefix+"."+f.Path, err)
				return
			}
			if err != nil {
				t.Fatalf("the object was refused: %v", err)
			}
			got := mirrortest.FieldAtPath(t, reflect.ValueOf(to).Elem(), f.Path)
			switch f.Decision {
			case fields.Keep:
				if diff := cmp.Diff(field.Interface(), got.Interface()); diff != "" {
					t.Errorf("the field was not kept (-root +leaf):\n%s", diff)
				}
			case fields.Drop:
				if !got.IsZero() {
					t.Errorf("the field was not dropped: %v", got.Interface())
				}
			case fields.Translate:
				// The tests of each translation check the result. This one only checks that the value
				// changes.
				if reflect.DeepEqual(field.Interface(), got.Interface()) && !slices.Contains(sometimesTheSame, f.Path) {
					t.Errorf("the table's decision is Translate, but the field is unchanged: %v", got.Interface())
				}
			default:
				t.Errorf("unknown decision %q", f.Decision)
			}
		})
	}
}

// sometimesTheSame lists translated fields that do not change with the values of this test.
var sometimesTheSame = []string{
	"annotations", "labels", "tolerations", "affinity.podAntiAffinity", "podIP", "podIPs",
	"initContainers[].volumeMounts", "containers[].volumeMounts", "ephemeralContainers[].volumeMounts",
	"topologySpreadConstraints[].labelSelector", "currentVolumeAttributesClassName", "modifyVolumeStatus",
	"restoreSize", "error", "volumeSnapshotClassName",
}

func checkRefused(t *testing.T, path string, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("the object was not refused")
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(path), `\[\]`, `\[[^\]]+\]`)
	if !regexp.MustCompile(pattern + ": ").MatchString(err.Error()) {
		t.Errorf("the message does not name %s: %v", path, err)
	}
}

// Tables returns all tables in the order of FIELDS.md.
func Tables() []fields.Table {
	return []fields.Table{fields.MetaTable, podspec.PodFieldTable, podstatus.PodStatusFieldTable, pvc.ClaimFieldTable, pvc.ClaimStatusFieldTable, hostpv.VolumeFieldTable, snapshot.SnapshotFieldTable, snapshot.ContentStatusFieldTable, mirror.BudgetFieldTable, mirror.ServiceFieldTable, mirror.EndpointFieldTable}
}
