package reflectedclass

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// reportInvalidParameters emits an event on one of Xylem's classes with invalid parameters: once for each class, because
// parameters are immutable, and again after a restart of the manager. host_claim reports the same problems on claims.
func (r *Reconciler) reportInvalidParameters(name string, class *storagev1.StorageClass) {
	problem := invalidParameters(class)
	if problem == nil {
		delete(r.reportedUIDs, name)
		return
	}
	if r.reportedUIDs[name] == class.UID {
		return
	}
	r.reportedUIDs[name] = class.UID
	r.Recorder.Eventf(class, nil, corev1.EventTypeWarning, problem.Reason, "Provision", "%s. Until then, Xylem does not provision volumes for claims of this class", problem.Message)
}

// invalidParameters returns the problem with the class, or nil if it is valid or not one of Xylem's.
func invalidParameters(class *storagev1.StorageClass) *mirror.Refusal {
	if !hostpv.IsXylemClass(class) {
		return nil
	}
	_, err := hostpv.ReadClassParameters(class)
	var refusal *mirror.Refusal
	errors.As(err, &refusal)
	return refusal
}
