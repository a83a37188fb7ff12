package model

import (
	"flag"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

var disruptions = flag.Uint("disruptions", 3, "at most so many disruptions lie on the way to a world")

func TestCheck(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	m, err := New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	r := m.Check(t.Context(), uint8(*disruptions))
	t.Logf("%d disruptions, %s: %s", *disruptions, time.Since(begun).Round(time.Millisecond), r)
	for what, f := range r.Findings {
		t.Errorf("%d worlds: %s\n%s", f.Worlds, what, f.Trace)
	}
	// A model in which nothing happens finds nothing.
	for _, step := range []string{"root_pvc", "root_pv", "leaf_pv", "host_volume"} {
		if r.ByController[step] == 0 {
			t.Errorf("%s took no step", step)
		}
	}
	if r.Ends == 0 {
		t.Error("there is no world in which nothing moves")
	}
}
