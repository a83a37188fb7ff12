package guarded

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

// noteLimit of an event's note in bytes: a longer one is refused, and nobody
// would be told anything (k8s.io/kubernetes/pkg/apis/core/validation).
const noteLimit = 1024

// Recorder is an event recorder whose notes are cut to what the API server takes.
func Recorder(r events.EventRecorder) events.EventRecorder { return cutting{r} }

type cutting struct{ events.EventRecorder }

func (c cutting) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	c.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", sanitize.Plain(fmt.Sprintf(note, args...), noteLimit))
}
