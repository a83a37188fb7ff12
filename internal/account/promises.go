package account

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

// scrapeTimeout bounds a scrape's lookups in the cache.
const scrapeTimeout = 5 * time.Second

var unfulfilled = prometheus.NewDesc("xylem_promises_unfulfilled",
	"Promises assigned to a member that have no disk yet and that a Pod is waiting for.", []string{"cluster"}, nil)

// Promises counts the promises that Pods wait for. It reads the host's objects at each scrape, so
// the metric is always consistent with them.
type Promises struct {
	// Host reads from the host's cache.
	Host client.Reader
	// Leads is closed when this replica becomes the leader. Other replicas report nothing.
	Leads <-chan struct{}
}

var _ prometheus.Collector = Promises{}

// Describe sends the metric's description.
func (Promises) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- unfulfilled }

// Collect sends one value per registered member.
func (p Promises) Collect(samples chan<- prometheus.Metric) {
	select {
	case <-p.Leads:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout) //nolint:forbidigo // Collect is given none
	defer cancel()
	counts, err := p.count(ctx)
	if err != nil { // do not fail the scrape of all other metrics
		ctrl.Log.WithName("metrics").Error(err, "could not count the promises that Pods wait for")
		return
	}
	for registration, n := range counts {
		samples <- prometheus.MustNewConstMetric(unfulfilled, prometheus.GaugeValue, float64(n), registration)
	}
}

// count returns the number of awaited promises by registration.
func (p Promises) count(ctx context.Context) (map[string]int, error) {
	var members v1alpha1.ClusterRegistrationList
	if err := p.Host.List(ctx, &members); err != nil {
		return nil, fmt.Errorf("list ClusterRegistrations: %w", err)
	}
	counts := map[string]int{}
	for i := range members.Items {
		if members.Items[i].Status.ClusterID == "" {
			continue
		}
		promises, err := index.PromisesIn(ctx, p.Host, members.Items[i].Status.ClusterID)
		if err != nil {
			return nil, err
		}
		n := 0
		for j := range promises {
			waited, err := p.waitedFor(ctx, &promises[j])
			if err != nil {
				return nil, err
			}
			if waited {
				n++
			}
		}
		counts[members.Items[i].Name] = n
	}
	return counts, nil
}

// waitedFor reports whether a Pod that has not ended uses the promise's claim.
func (p Promises) waitedFor(ctx context.Context, promise *corev1.PersistentVolume) (bool, error) {
	ref := promise.Spec.ClaimRef
	if ref == nil {
		return false, nil
	}
	pods, err := index.PodsOfClaim(ctx, p.Host, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !podstatus.Finished(&pod) }), err
}
