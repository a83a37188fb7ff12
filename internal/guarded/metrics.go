package guarded

import (
	"fmt"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var writes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "xylem_writes_total",
	Help: "Writes on behalf of a member (of none: an empty cluster, the heartbeats of Nodes among them), by the side written to (root: the host, leaf: the member), kind, verb and result (ok, or the API's reason).",
}, []string{"cluster", "side", "kind", "verb", "result"})

func init() { metrics.Registry.MustRegister(writes) }

// ForgetMetrics removes the series of a member that is no longer registered.
func ForgetMetrics(cluster string) {
	writes.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
}

func count(cluster, side, verb string, obj client.Object, err error) error {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(obj).Elem().Name()
	}
	result := "ok"
	if err != nil {
		if result = string(apierrors.ReasonForError(err)); result == string(metav1.StatusReasonUnknown) {
			result = "error"
		}
		err = fmt.Errorf("%s %s %s in the %s: %w", verb, kind, client.ObjectKeyFromObject(obj), clusterOf(side), err)
	}
	writes.WithLabelValues(cluster, side, kind, verb, result).Inc()
	return err
}

func clusterOf(side string) string {
	if side == sideLeaf {
		return "member"
	}
	return "host"
}
