package guarded

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
)

// referring refers to objects as client-go's recorder does.
type referring struct {
	events.EventRecorder
	t testing.TB
}

func (r referring) Eventf(regarding, related runtime.Object, _, _, _, _ string, _ ...any) {
	for _, object := range []runtime.Object{regarding, related} {
		if object == nil {
			continue
		}
		if _, err := reference.GetReference(scheme.Scheme, object); err != nil {
			r.t.Error(err)
		}
	}
}

func TestRecorderWithoutRelatedObject(t *testing.T) {
	var claim *corev1.PersistentVolumeClaim
	WrapRecorder(referring{t: t}).Eventf(&corev1.PersistentVolume{}, claim, corev1.EventTypeWarning, "LastClaimLost", "Retain", "")
}
