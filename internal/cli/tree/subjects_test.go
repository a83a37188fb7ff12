package tree

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/tree/gather"
	"github.com/xylem-io/xylem/internal/cli/tree/model"
)

// TestPrintWatched checks the age of what is younger than a minute.
func TestPrintWatched(t *testing.T) {
	out, created := &bytes.Buffer{}, metav1.Date(2026, 11, 25, 5, 0, 30, 0, time.UTC)
	clock := clocktesting.NewFakeClock(created.Add(15 * time.Second))
	o := &options{watch: true, env: command.NewEnv(genericiooptions.IOStreams{In: out, Out: out, ErrOut: out}, clock)}
	if err := o.print(&model.Tree{Root: model.Node{Kind: gather.KindClaim, Name: "data", Created: &created}}, target{gather.KindClaim, "data"}, false); err != nil {
		t.Fatal(err)
	}
	if printed := out.String(); strings.Contains(printed, "<invalid>") || !strings.Contains(printed, "15s") || !strings.Contains(printed, "05:00:45") {
		t.Errorf("want an age of 15s at 05:00:45:\n%s", printed)
	}
}

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
