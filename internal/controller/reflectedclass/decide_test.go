package reflectedclass

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/reflection"
)

func ruled(policy corev1.PersistentVolumeReclaimPolicy, expands bool, by ...string) reflection.Ruling {
	ruling := reflection.Ruling{Terms: reflection.ClassTerms{Policy: policy, Expands: expands}}
	for _, name := range by {
		ruling.Offering = append(ruling.Offering, reflection.Offering{Registration: name, ClusterID: "id-" + name})
	}
	return ruling
}

func TestDecide(t *testing.T) {
	const retain, del = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
	standing := func(change ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
		class := reflection.HostClassForRuling("fast", ruled(del, true, "a", "b"), nil)
		for _, f := range change {
			f(class)
		}
		return class
	}
	for name, c := range map[string]struct {
		class  *storagev1.StorageClass
		ruling reflection.Ruling
		want   action
	}{
		"a member offers the class, which does not exist yet": {nil, ruled(del, true, "a"), createClass},
		"no member offers the class, which does not exist":    {nil, ruled("", false), doNothing},
		"the class is up to date":                             {standing(), ruled(del, true, "b", "a"), doNothing},
		"no member offers the class anymore":                  {standing(), ruled("", false), deleteClass},
		"one of the members no longer offers the class":       {standing(), ruled(del, true, "a"), patchClass},
		"another member offers the class":                     {standing(), ruled(del, true, "a", "b", "c"), patchClass},
		"expansion is no longer allowed":                      {standing(), ruled(del, false, "a", "b"), patchClass},
		"the members' reclaim policy changes":                 {standing(), ruled(retain, true, "a", "b"), recreateClass},
		"someone added parameters":                            {standing(func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"a": "b"} }), ruled(del, true, "a", "b"), recreateClass},
		"someone removed the topologies":                      {standing(func(c *storagev1.StorageClass) { c.AllowedTopologies = nil }), ruled(del, true, "a", "b"), patchClass},
		"the class belongs to another provisioner":            {standing(func(c *storagev1.StorageClass) { c.Provisioner = "ebs.csi.aws.com" }), ruled("", false), doNothing},
		"an admin took over the class":                        {standing(func(c *storagev1.StorageClass) { delete(c.Labels, v1alpha1.LabelManagedBy) }), ruled("", false), doNothing},
		"the class has only the managed-by label":             {standing(func(c *storagev1.StorageClass) { c.Labels = map[string]string{v1alpha1.LabelManagedBy: "xylem"} }), ruled("", false), doNothing},
		"the class is being deleted":                          {standing(func(c *storagev1.StorageClass) { c.DeletionTimestamp = &metav1.Time{} }), ruled(retain, true, "a"), doNothing},
		"an admin made the class the default": {standing(func(c *storagev1.StorageClass) {
			c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}), ruled(del, true, "a", "b"), doNothing},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.class.DeepCopy()
			got := decideClassAction("fast", c.class, nil, c.ruling)
			if got.do != c.want {
				t.Errorf("decision is %d, want %d", got.do, c.want)
			}
			if got.do == patchClass || got.do == createClass || got.do == recreateClass {
				if next := decideClassAction("fast", got.after, nil, c.ruling); next.do != doNothing {
					t.Errorf("after the write, the decision is %d, want nothing", next.do)
				}
			}
			if diff := cmp.Diff(before, c.class); diff != "" {
				t.Errorf("decide changed the observed class:\n%s", diff)
			}
		})
	}
}

// scripted is a host that records the order of writes and fails the specified ones.
type scripted struct {
	client.Client
	writes []string
	made   *storagev1.StorageClass
	fail   map[string]error
}

func (s *scripted) write(verb string, on *metav1.Preconditions) error {
	if on != nil {
		verb += " " + string(*on.UID) + "/" + *on.ResourceVersion
	}
	s.writes = append(s.writes, verb)
	return s.fail[strings.Fields(verb)[0]]
}

func (s *scripted) Delete(_ context.Context, _ client.Object, opts ...client.DeleteOption) error {
	return s.write("delete", (&client.DeleteOptions{}).ApplyOptions(opts).AsDeleteOptions().Preconditions)
}

func (s *scripted) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if class, ok := obj.(*storagev1.StorageClass); ok {
		s.made = class.DeepCopy()
	}
	return s.write("create", nil)
}

// If an immutable field has changed, the class is re-created in one step. It keeps the labels and
// annotations that others set, even if the first attempt fails.
func TestRemake(t *testing.T) {
	failed := errors.New("the API server is down")
	for name, c := range map[string]struct {
		fail   map[string]error
		writes []string
	}{
		"no failure":                      {nil, []string{"delete uid/7", "create"}},
		"the creation fails":              {map[string]error{"create": failed}, []string{"delete uid/7", "create"}},
		"the deletion's response is lost": {map[string]error{"delete": failed}, []string{"delete uid/7"}},
	} {
		t.Run(name, func(t *testing.T) {
			class := reflection.HostClassForRuling("fast", ruled(corev1.PersistentVolumeReclaimDelete, true, "a"), nil)
			class.UID, class.ResourceVersion = "uid", "7"
			class.Labels["theirs"] = "kept"
			class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
			ruling := ruled(corev1.PersistentVolumeReclaimRetain, true, "a")
			want := reflection.HostClassForRuling("fast", ruling, class)
			want.UID, want.ResourceVersion = "", ""

			host := &scripted{fail: c.fail}
			r := &Reconciler{host: guarded.NewHostWriter(host, "", guarded.HostOnlyGuard{}), beingRecreated: map[string]*storagev1.StorageClass{}}
			if err := r.executeDecision(t.Context(), class, decideClassAction("fast", class, nil, ruling)); (err != nil) != (c.fail != nil) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.writes, host.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if c.fail != nil {
				host.fail = nil
				if err := r.executeDecision(t.Context(), nil, decideClassAction("fast", nil, r.beingRecreated["fast"], ruling)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, host.made); diff != "" {
				t.Errorf("created (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConcerned(t *testing.T) {
	a, b := reflection.Problem{Message: "a"}, reflection.Problem{Message: "b"}
	type problems = map[string]reflection.Problem
	for name, c := range map[string]struct {
		was, is problems
		want    []string
	}{
		"no problems":                        {nil, nil, nil},
		"an unchanged problem":               {problems{"x": a}, problems{"x": a}, nil},
		"a new problem":                      {nil, problems{"x": a}, []string{"x"}},
		"one of two problems is resolved":    {problems{"x": a, "y": a}, problems{"y": a}, []string{"x"}},
		"the message of one problem changes": {problems{"x": a, "y": a}, problems{"x": b, "y": a}, []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, slices.Sorted(maps.Keys(registrationsWithChanges(c.was, c.is)))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
