package stuck

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// eventStuck has the kind of the cause as its action: events that differ in their
// note alone are taken for the same one.
func (w *Watcher) eventStuck(c candidate) {
	w.Recorder.Eventf(c.object, nil, corev1.EventTypeWarning, v1alpha1.ReasonStuckDeletion, c.Cause.Kind,
		"the deletion has been in progress since %s: %s", c.Since.UTC().Format(time.RFC3339), c.Cause.Text)
}
