package hostclass

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/events"

	"github.com/xylem-io/xylem/internal/mirror"
)

// cannotBeFollowed emits an event on an invalid class.
func cannotBeFollowed(recorder events.EventRecorder, class *storagev1.StorageClass, problem *mirror.Refusal) {
	recorder.Eventf(class, nil, corev1.EventTypeWarning, problem.Reason, "Provision", "%s. Until then, Xylem does not provision volumes for claims of this class", problem.Message)
}
