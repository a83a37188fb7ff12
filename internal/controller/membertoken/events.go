package membertoken

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func (r *renewer) emitTokenRenewed(seen tokenObservation, expires time.Time) {
	r.recorder.Eventf(seen.registered, nil, corev1.EventTypeNormal, v1alpha1.ReasonTokenRenewed, "Renew",
		"the token in the member was renewed; the new one expires at %s", expires.UTC().Format(time.RFC3339))
}

func (r *renewer) emitTokenNotRenewed(seen tokenObservation, trouble string) {
	r.recorder.Eventf(seen.registered, nil, corev1.EventTypeWarning, v1alpha1.ReasonTokenNotRenewed, "Renew", "%s", trouble)
}
