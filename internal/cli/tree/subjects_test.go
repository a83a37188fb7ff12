package tree

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// TestPrintWatched checks the age of what is younger than a minute.
func TestPrintWatched(t *testing.T) {
	out, created := &bytes.Buffer{}, metav1.Date(2026, 11, 25, 5, 0, 30, 0, time.UTC)
	clock := clocktesting.NewFakeClock(created.Add(15 * time.Second))
	o := &options{watch: true, env: command.NewEnv(genericiooptions.IOStreams{In: out, Out: out, ErrOut: out}, clock)}
	if err := o.printOutput(&inspect.Tree{Root: inspect.Node{Kind: inspect.KindClaim, Name: "data", Created: &created}}, target{inspect.KindClaim, "data"}, false); err != nil {
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
		"KIND NAME":           {args: []string{"pvc", "data"}, want: target{inspect.KindClaim, "data"}},
		"KIND/NAME":           {args: []string{"pvc/data"}, want: target{inspect.KindClaim, "data"}},
		"a workload":          {args: []string{"sts/db"}, want: target{kindStatefulSet, "db"}},
		"a Deployment":        {args: []string{"Deployment", "web"}, want: target{kindDeployment, "web"}},
		"a volume":            {args: []string{"pv/pvc-1"}, want: target{inspect.KindVolume, "pvc-1"}},
		"a snapshot":          {args: []string{"volumesnapshot", "nightly"}, want: target{inspect.KindSnapshot, "nightly"}},
		"a namespace":         {args: []string{"ns/shop"}, want: target{kindNamespace, "shop"}},
		"no arguments":        {says: "KIND/NAME"},
		"no name":             {args: []string{"pvc/"}, says: "KIND/NAME"},
		"a misspelled kind":   {args: []string{"statefullset/db"}, says: `Did you mean "statefulset"?`},
		"an unsupported kind": {args: []string{"cronjob", "x"}, says: "KIND is one of pvc, pod"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseTarget(tc.args)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got error %v, want %q", err, tc.says)
			}
			if got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestWorkloads checks when a workload is healthy, and which of its conditions report a problem.
func TestWorkloads(t *testing.T) {
	type condition struct {
		kind   string
		status corev1.ConditionStatus
	}
	for name, tc := range map[string]struct {
		kind          string
		wanted, ready int32
		conditions    []condition
		want          inspect.Health
		says          string
	}{
		"all Pods are ready":         {kindDeployment, 2, 2, []condition{{"Progressing", "True"}}, inspect.Good, "2 of 2 Pods ready"},
		"no Pods are wanted":         {kindReplicaSet, 0, 0, nil, inspect.Good, "0 of 0 Pods ready"},
		"a Pod is not ready":         {kindStatefulSet, 2, 1, nil, inspect.Waiting, "1 of 2 Pods ready"},
		"a Pod cannot be created":    {kindDeployment, 2, 1, []condition{{"ReplicaFailure", "True"}}, inspect.Bad, "1 of 2 Pods ready"},
		"a Pod could not be created": {kindDeployment, 2, 1, []condition{{"ReplicaFailure", "False"}}, inspect.Waiting, "1 of 2 Pods ready"},
		"a complete Job":             {kindJob, 3, 2, []condition{{"SuccessCriteriaMet", "True"}, {"Complete", "True"}}, inspect.Good, "2 of 3 Pods succeeded"},
		"a failed Job":               {kindJob, 1, 0, []condition{{"Failed", "True"}}, inspect.Bad, "0 of 1 Pod succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload{wanted: tc.wanted, ready: tc.ready}
			for _, c := range tc.conditions {
				w.addProblem(c.kind, c.status, "Reason", "message", metav1.Time{})
			}
			n := w.nodeOfWorkload(tc.kind, &appsv1.Deployment{})
			if n.Health != tc.want || n.Details[0] != tc.says || (n.Health == inspect.Bad) != (len(n.Conditions) > 0) {
				t.Errorf("got %+v, want %s, %q", n, tc.want, tc.says)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	node := func(name string, health inspect.Health, children ...inspect.Node) inspect.Node {
		return inspect.Node{Name: name, Health: health, Children: children}
	}
	n := node("ns", inspect.Good,
		node("well", inspect.Good, node("leaf", inspect.Good)),
		node("way", inspect.Good, node("bad", inspect.Bad), node("fine", inspect.Good)),
		node("waiting", inspect.Waiting))
	if !keepOnlyProblems(&n) {
		t.Error("found no problems, although the tree has unhealthy objects")
	}
	want := node("ns", inspect.Good, node("way", inspect.Good, node("bad", inspect.Bad)), node("waiting", inspect.Waiting))
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if n = node("ns", inspect.Good, node("well", inspect.Good)); keepOnlyProblems(&n) {
		t.Error("found problems in a healthy tree")
	}
}
