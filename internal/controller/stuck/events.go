package stuck

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// eventStuck uses the kind of the cause as the event's action, because events that differ only in
// their note count as one.
func (w *Watcher) eventStuck(c candidate) {
	w.Recorder.Eventf(c.object, nil, corev1.EventTypeWarning, v1alpha1.ReasonStuckDeletion, c.Cause.Kind,
		"the deletion has been in progress since %s: %s", c.Since.UTC().Format(time.RFC3339), c.Cause.Text)
}
