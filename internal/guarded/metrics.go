package guarded

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/xylem-io/xylem/internal/wording"
)

var writesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "xylem_writes_total",
	Help: "Writes on behalf of a member, by side (root: the host, leaf: the member), kind, verb and result (ok, the API's reason, or error). Writes that concern no member, such as heartbeats of Nodes, have an empty cluster label.",
}, []string{"cluster", "side", "kind", "verb", "result"})

// ClusterSide is the side of a write: the host or the member.
type ClusterSide string

// HostSide is the host.
const HostSide ClusterSide = "root"

// MemberSide is the member.
const MemberSide ClusterSide = "leaf"

// DisplayName returns the cluster as messages name it.
func (s ClusterSide) DisplayName() string {
	if s == MemberSide {
		return "member"
	}
	return "host"
}

func init() { metrics.Registry.MustRegister(writesTotal) }

// DeleteWriteMetrics deletes the series of a member that is no longer registered.
func DeleteWriteMetrics(cluster string) {
	writesTotal.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
}

// CountWrite counts a write, and returns its error with the write in the message. A webhook's denial
// becomes Forbidden.
func CountWrite(cluster string, side ClusterSide, verb string, obj client.Object, err error) error {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(obj).Elem().Name()
	}
	if err = denialAsForbidden(err); err != nil {
		err = fmt.Errorf("%s %s %s in the %s: %w", verb, kind, client.ObjectKeyFromObject(obj), side.DisplayName(), err)
	}
	writesTotal.WithLabelValues(cluster, string(side), kind, verb, resultLabelOf(err)).Inc()
	return err
}

// denialAsForbidden returns a webhook's denial as Forbidden. A webhook may choose any status, but NotFound or
// Conflict would tell the controllers that their caches are behind.
func denialAsForbidden(err error) error {
	status := apierrors.APIStatus(nil)
	if !wording.DeniedByWebhook(err) || !errors.As(err, &status) {
		return err
	}
	denial := status.Status()
	denial.Code, denial.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	return &apierrors.StatusError{ErrStatus: denial}
}

// knownReasons are the reasons that API servers return. Other reasons are not used as label values,
// because a hostile member could return a new one for each write, and each would create a series.
var knownReasons = []metav1.StatusReason{
	metav1.StatusReasonUnauthorized, metav1.StatusReasonForbidden, metav1.StatusReasonNotFound, metav1.StatusReasonAlreadyExists,
	metav1.StatusReasonConflict, metav1.StatusReasonGone, metav1.StatusReasonInvalid, metav1.StatusReasonServerTimeout,
	metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests, metav1.StatusReasonBadRequest, metav1.StatusReasonMethodNotAllowed,
	metav1.StatusReasonNotAcceptable, metav1.StatusReasonRequestEntityTooLarge, metav1.StatusReasonUnsupportedMediaType,
	metav1.StatusReasonInternalError, metav1.StatusReasonExpired, metav1.StatusReasonServiceUnavailable,
}

// resultLabelOf returns a write's result as a label value.
func resultLabelOf(err error) string {
	if err == nil {
		return "ok"
	}
	if reason := apierrors.ReasonForError(err); slices.Contains(knownReasons, reason) {
		return string(reason)
	}
	return "error"
}
