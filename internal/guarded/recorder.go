package guarded

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/xylem-io/xylem/internal/mirror"
)

// maxNoteBytes is the maximum length of an event's note in bytes. The API server rejects longer notes
// (k8s.io/kubernetes/pkg/apis/core/validation).
const maxNoteBytes = 1024

// WrapRecorder wraps an event recorder, and truncates notes to the length that the API server
// accepts. The related object may be a nil pointer, for which client-go's recorder panics.
func WrapRecorder(r events.EventRecorder) events.EventRecorder { return truncatingRecorder{r} }

type truncatingRecorder struct{ events.EventRecorder }

func (c truncatingRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	if object := reflect.ValueOf(related); object.Kind() == reflect.Pointer && object.IsNil() {
		related = nil
	}
	c.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", mirror.PlainText(fmt.Sprintf(note, args...), maxNoteBytes))
}
