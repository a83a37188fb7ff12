package tree

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xylem-io/xylem/internal/cli/tree/gather"
	"github.com/xylem-io/xylem/internal/cli/tree/model"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want target
		says string // of the error
	}{
		"KIND NAME":           {args: []string{"pvc", "data"}, want: target{gather.KindClaim, "data"}},
		"KIND/NAME":           {args: []string{"pvc/data"}, want: target{gather.KindClaim, "data"}},
		"a workload":          {args: []string{"sts/db"}, want: target{kindStatefulSet, "db"}},
		"a Deployment":        {args: []string{"Deployment", "web"}, want: target{kindDeployment, "web"}},
		"a namespace":         {args: []string{"ns/shop"}, want: target{kindNamespace, "shop"}},
		"no arguments":        {says: "KIND/NAME"},
		"no name":             {args: []string{"pvc/"}, says: "KIND/NAME"},
		"a misspelled kind":   {args: []string{"statefullset/db"}, says: `Did you mean "statefulset"?`},
		"an unsupported kind": {args: []string{"job", "x"}, says: "KIND is one of pvc, pod"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(tc.args)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got error %v, want %q", err, tc.says)
			}
			if got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	node := func(name string, health model.Health, children ...model.Node) model.Node {
		return model.Node{Name: name, Health: health, Children: children}
	}
	n := node("ns", model.Good,
		node("well", model.Good, node("leaf", model.Good)),
		node("way", model.Good, node("bad", model.Bad), node("fine", model.Good)),
		node("waiting", model.Waiting))
	if !problems(&n) {
		t.Error("found no problems, although the tree has unhealthy objects")
	}
	want := node("ns", model.Good, node("way", model.Good, node("bad", model.Bad)), node("waiting", model.Waiting))
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if n = node("ns", model.Good, node("well", model.Good)); problems(&n) {
		t.Error("found problems in a healthy tree")
	}
}
