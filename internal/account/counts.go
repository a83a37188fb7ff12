package account

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

// scrapeTimeout bounds a scrape's lookups in the cache.
const scrapeTimeout = 5 * time.Second

var (
	unfulfilledPromisesDesc = prometheus.NewDesc("xylem_promises_unfulfilled",
		"Promises assigned to a member that have no disk yet and that a Pod is waiting for.", []string{"cluster"}, nil)
	classOnlyInAnnotationDesc = prometheus.NewDesc("xylem_claims_with_class_only_in_annotation",
		"Claims without a volume whose Xylem class only the annotation volume.beta.kubernetes.io/storage-class names, by class. They make kube-scheduler 1.37 panic.", []string{"class"}, nil)
)

// hostCountMetrics are the metrics that HostCounts computes, each by its only label.
var hostCountMetrics = map[*prometheus.Desc]func(context.Context, client.Reader) (map[string]int, error){
	unfulfilledPromisesDesc:   countAwaitedPromises,
	classOnlyInAnnotationDesc: countAnnotatedClaims,
}

// HostCounts counts the host's objects that its metrics are about at each scrape, so these are always
// consistent with the cache.
type HostCounts struct {
	// Host reads from the host's cache.
	Host client.Reader
	// Elected is closed when this replica becomes the leader. Other replicas report nothing.
	Elected <-chan struct{}
}

var _ prometheus.Collector = HostCounts{}

// Describe sends the metrics' descriptions.
func (HostCounts) Describe(descriptions chan<- *prometheus.Desc) {
	for description := range hostCountMetrics {
		descriptions <- description
	}
}

// Collect sends the metrics' values.
func (h HostCounts) Collect(samples chan<- prometheus.Metric) {
	select {
	case <-h.Elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout) //nolint:forbidigo // Collect is given none
	defer cancel()
	for description, count := range hostCountMetrics {
		values, err := count(ctx, h.Host)
		if err != nil { // do not fail the scrape of all other metrics
			ctrl.Log.WithName("metrics").Error(err, "could not count objects of the host", "metric", description.String())
			continue
		}
		for label, n := range values {
			samples <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(n), label)
		}
	}
}

// countAnnotatedClaims returns the number of claims whose class only the old annotation names, for each
// of Xylem's classes.
func countAnnotatedClaims(ctx context.Context, host client.Reader) (map[string]int, error) {
	var classes storagev1.StorageClassList
	if err := host.List(ctx, &classes, index.ReadOnly); err != nil {
		return nil, fmt.Errorf("list StorageClasses: %w", err)
	}
	byClass := map[string]int{}
	for i := range classes.Items {
		if hostpv.IsXylemClass(&classes.Items[i]) {
			byClass[classes.Items[i].Name] = 0
		}
	}
	claims, err := index.ClaimsWithAnnotatedClass(ctx, host)
	for i := range claims {
		name := hostpv.ClassNameOf(&claims[i])
		if _, own := byClass[name]; own {
			byClass[name]++
		}
	}
	return byClass, err
}

// countAwaitedPromises returns the number of awaited promises by registration.
func countAwaitedPromises(ctx context.Context, host client.Reader) (map[string]int, error) {
	var members v1alpha1.ClusterRegistrationList
	if err := host.List(ctx, &members); err != nil {
		return nil, fmt.Errorf("list ClusterRegistrations: %w", err)
	}
	byRegistration := map[string]int{}
	for i := range members.Items {
		if members.Items[i].Status.ClusterID == "" {
			continue
		}
		promises, err := index.UnfulfilledPromisesIn(ctx, host, members.Items[i].Status.ClusterID)
		if err != nil {
			return nil, err
		}
		n := 0
		for j := range promises {
			waited, err := isAwaitedByPod(ctx, host, &promises[j])
			if err != nil {
				return nil, err
			}
			if waited {
				n++
			}
		}
		byRegistration[members.Items[i].Name] = n
	}
	return byRegistration, nil
}

// isAwaitedByPod reports whether a Pod that has not ended uses the promise's claim.
func isAwaitedByPod(ctx context.Context, host client.Reader, promise *corev1.PersistentVolume) (bool, error) {
	ref := promise.Spec.ClaimRef
	if ref == nil {
		return false, nil
	}
	pods, err := index.PodsOfClaim(ctx, host, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !podstatus.IsPodFinished(&pod) }), err
}
