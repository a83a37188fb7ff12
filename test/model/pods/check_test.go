package pods

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/test/model/bound"
)

var disruptions = bound.Flag("disruptions", 4, 3, "maximum number of disruptions on the path to a world")

func TestCheck(t *testing.T) {
	begun := time.Now()
	ctrl.SetLogger(logr.Discard())
	r := Check(t.Context(), uint8(disruptions()))
	t.Logf("%d disruptions, %s: %s", disruptions(), time.Since(begun).Round(time.Millisecond), r)
	for what, f := range r.Findings {
		t.Errorf("%d worlds: %s\n%s", f.Worlds, what, f.Trace)
	}
	if r.Steps == 0 || r.Ends == 0 {
		t.Error("root_pod never took a step, or no world is without moves")
	}
}
