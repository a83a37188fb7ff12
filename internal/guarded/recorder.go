package guarded

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// noteLimit of an event's note in bytes: a longer one is refused, and nobody
// would be told anything (k8s.io/kubernetes/pkg/apis/core/validation).
const noteLimit = 1024

// Recorder is an event recorder whose notes are cut to what the API server takes.
func Recorder(r events.EventRecorder) events.EventRecorder { return cutting{r} }

type cutting struct{ events.EventRecorder }

func (c cutting) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	c.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", cut(fmt.Sprintf(note, args...), noteLimit))
}

// cut shortens a text to so many bytes, in whole characters.
func cut(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
