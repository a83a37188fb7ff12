package rootpv

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func (r *reconciler) eventAbandoned(o observed) {
	r.Recorder.Eventf(o.host, nil, corev1.EventTypeWarning, "Abandoned", "Release",
		"let go of leaf volume %s in member %s by annotation %s: its data stay there", o.leafName, r.Registration, v1alpha1.AnnotationAbandon)
}
