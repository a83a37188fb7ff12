package mirror

import (
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var update = flag.Bool("update", false, "write FIELDS.md anew")

const fieldsDoc = "FIELDS.md"

func TestFieldsDoc(t *testing.T) {
	want := FieldsMarkdown()
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
		t.Errorf("%s is not what the tables say; run this test with -update (-want +got):\n%s", fieldsDoc, diff)
	}
}

func TestEveryFieldIsDecided(t *testing.T) {
	for _, table := range Tables() {
		t.Run(table.Title, func(t *testing.T) {
			undecided, stale := table.gaps()
			for _, path := range undecided {
				t.Errorf("nobody decided on %s.%s", table.root, path)
			}
			for _, path := range stale {
				t.Errorf("the entry %s stands for no field, or twice for one", path)
			}
			for _, f := range table.Fields {
				if f.Reason == "" || strings.ContainsAny(f.Reason, "|\n") {
					t.Errorf("the reason of %s is no cell of a table: %q", f.Path, f.Reason)
				}
			}
		})
	}
}

// TestGaps: the net that TestEveryFieldIsDecided hangs over the API holds.
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
		"all decided as a whole": {paths: []string{"e", "one", "many", "pointer", "time", "map"}},
		"all decided one by one": {paths: []string{"e", "one.a", "one.b", "many[].a", "many[].b", "pointer.a", "pointer.b", "time", "map"}},
		"a new field at the top": {
			paths:     []string{"e", "one", "many", "time", "map"},
			undecided: []string{"pointer"},
		},
		"a new embedded field": {
			paths:     []string{"one", "many", "pointer", "time", "map"},
			undecided: []string{"e"},
		},
		"new fields below": {
			paths:     []string{"e", "one.a", "many[].b", "pointer.a", "time", "map"},
			undecided: []string{"one.b", "many[].a", "pointer.b"},
		},
		"a field that is gone": {
			paths: []string{"e", "one", "many", "pointer", "time", "map", "old", "one.c"},
			stale: []string{"old", "one.c"},
		},
		"a field below one that is decided": {
			paths: []string{"e", "one", "one.a", "many", "pointer", "time", "map"},
			stale: []string{"one.a"},
		},
		"a field decided twice": {
			paths: []string{"e", "e", "one", "many", "pointer", "time", "map"},
			stale: []string{"e", "e"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			table := Table{holder: reflect.TypeFor[outer]()}
			for _, path := range c.paths {
				table.Fields = append(table.Fields, Field{path, Keep, "why"})
			}
			undecided, stale := table.gaps()
			if diff := cmp.Diff(c.undecided, undecided); diff != "" {
				t.Errorf("undecided (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.stale, stale); diff != "" {
				t.Errorf("stale (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTablesTellTheTruth sets one field after the other, and nothing else, and
// looks at what translation makes of it.
func TestTablesTellTheTruth(t *testing.T) {
	t.Run("metadata", func(t *testing.T) {
		checkTable(t, metaTable, func(meta *metav1.ObjectMeta) (*metav1.ObjectMeta, error) {
			leaf, err := TranslatePod(&corev1.Pod{ObjectMeta: *meta}, member)
			if err != nil {
				return nil, err
			}
			return &leaf.ObjectMeta, nil
		})
	})
	t.Run("pod", func(t *testing.T) {
		checkTable(t, podTable, func(spec *corev1.PodSpec) (*corev1.PodSpec, error) {
			leaf, err := TranslatePod(&corev1.Pod{Spec: *spec}, member)
			if err != nil {
				return nil, err
			}
			PointAt(copies, leaf)
			return &leaf.Spec, nil
		})
	})
	t.Run("pod status", func(t *testing.T) {
		checkTable(t, podStatusTable, func(status *corev1.PodStatus) (*corev1.PodStatus, error) {
			root := &corev1.Pod{Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "x"}},
				Containers:     []corev1.Container{{Name: "x"}},
			}}
			shown := RootPodStatus(root, &corev1.Pod{Status: *status}, member)
			return &shown, nil
		})
	})
	t.Run("claim", func(t *testing.T) {
		checkTable(t, claimTable, func(spec *corev1.PersistentVolumeClaimSpec) (*corev1.PersistentVolumeClaimSpec, error) {
			leaf, err := TranslateClaim(&corev1.PersistentVolumeClaim{Spec: *spec}, nil, member)
			if err != nil {
				return nil, err
			}
			return &leaf.Spec, nil
		})
	})
	t.Run("claim status", func(t *testing.T) {
		checkTable(t, claimStatusTable, func(status *corev1.PersistentVolumeClaimStatus) (*corev1.PersistentVolumeClaimStatus, error) {
			root, leaf := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{Status: *status}
			root.Status.Phase, leaf.Status.Phase = corev1.ClaimBound, corev1.ClaimBound
			shown := RootClaimStatus(root, leaf)
			return &shown, nil
		})
	})
	t.Run("volume", func(t *testing.T) {
		checkTable(t, volumeTable, func(spec *corev1.PersistentVolumeSpec) (*corev1.PersistentVolumeSpec, error) {
			host := HostVolume(&corev1.PersistentVolume{Spec: *spec}, &corev1.PersistentVolumeClaim{}, corev1.PersistentVolumeReclaimRetain, member)
			return &host.Spec, nil
		})
	})
}

func checkTable[T any](t *testing.T, table Table, translate func(*T) (*T, error)) {
	t.Helper()
	for _, f := range table.Fields {
		t.Run(f.Path, func(t *testing.T) {
			from := new(T)
			field := at(t, reflect.ValueOf(from).Elem(), f.Path)
			(&filler{}).fill(field)
			if field.IsZero() {
				t.Fatal("the test did not set the field")
			}
			to, err := translate(from)
			if f.Decision == Refuse {
				checkRefused(t, table.root+"."+f.Path, err)
				return
			}
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			got := at(t, reflect.ValueOf(to).Elem(), f.Path)
			switch f.Decision {
			case Keep:
				if diff := cmp.Diff(field.Interface(), got.Interface()); diff != "" {
					t.Errorf("not kept (-root +leaf):\n%s", diff)
				}
			case Drop:
				if !got.IsZero() {
					t.Errorf("not dropped: %v", got.Interface())
				}
			case Translate:
				// What comes of it is told by the tests of each translation; that
				// there is one shows in that it is not what it was.
				if reflect.DeepEqual(field.Interface(), got.Interface()) && !slices.Contains(sometimesTheSame, f.Path) {
					t.Errorf("is translated by name only: %v", got.Interface())
				}
			default:
				t.Errorf("unknown decision %q", f.Decision)
			}
		})
	}
}

// sometimesTheSame are translated fields on which the value that this test puts
// there makes no difference.
var sometimesTheSame = []string{
	"annotations", "labels", "tolerations", "affinity.podAntiAffinity", "podIP", "podIPs",
	"initContainers[].volumeMounts", "containers[].volumeMounts",
	"topologySpreadConstraints[].labelSelector",
}

func checkRefused(t *testing.T, path string, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("not refused")
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(path), `\[\]`, `\[[^\]]+\]`)
	if !regexp.MustCompile(pattern + ": ").MatchString(err.Error()) {
		t.Errorf("the message does not name %s: %v", path, err)
	}
}
