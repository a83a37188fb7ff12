package stuck

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
)

// notice is an event about a stuck deletion.
type notice struct {
	object client.Object
	cause  account.Cause
	text   string
}

// notices returns the events about a stuck deletion in a member: on the deleted object in the host,
// and on the object that waits for the deletion.
func (c *candidate) notices(member string) []notice {
	since := c.Since.UTC().Format(time.RFC3339)
	var all []notice
	if c.object != nil {
		all = append(all, notice{c.object, c.Cause, fmt.Sprintf("the deletion has been in progress since %s: %s", since, c.Cause.Text)})
	}
	if c.waits == nil {
		return all
	}
	kind, _, _ := c.leafName()
	what := "an earlier " + kind + " with this name"
	if c.own {
		what = "this " + kind + "'s counterpart"
	}
	return append(all, notice{c.waits, c.Cause, fmt.Sprintf("member %q still has %s, whose deletion has been in progress since %s: %s", member, what, since, c.Cause.Text)})
}

// eventStuck uses the kind of the cause as the event's action, because events that differ only in
// their note count as one.
func (w *Watcher) eventStuck(n notice) {
	w.Recorder.Eventf(n.object, nil, corev1.EventTypeWarning, v1alpha1.ReasonStuckDeletion, n.cause.Kind, "%s", n.text)
}
