package account

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

var (
	orphaned = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_orphaned_volumes",
		Help: "Leaf volumes in a member that have no root, as of the last complete comparison of both sides. Absent while unknown.",
	}, []string{"cluster"})
	orphanedSnapshots = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_orphaned_snapshots",
		Help: "Snapshots in a member that no host content represents, as of the last complete comparison of both sides. Absent while unknown, or if the host or the member does not serve snapshots.",
	}, []string{"cluster"})
	snapshots = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_snapshots",
		Help: "Snapshots in a member that have a VolumeSnapshotContent in the host, by state: ready, pending (being taken, or unusable) or deleting. Absent if the host does not serve snapshots.",
	}, []string{"cluster", "state"})
	namespaces = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_namespaces_admitted",
		Help: "Host namespaces that a registration's spec.namespaces admits. Absent if the registration has no spec.namespaces.",
	}, []string{"cluster"})
	notAdmitted = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_objects_not_admitted",
		Help: "Claims and Pods in a member from namespaces that spec.namespaces does not admit, by kind. Absent if the registration has no spec.namespaces.",
	}, []string{"cluster", "kind"})
	accounted = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_volumes_accounted_timestamp_seconds",
		Help: "Time of the last complete comparison of a member's volumes with the host's, in seconds since 1970.",
	}, []string{"cluster"})
	oldestStuck = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_oldest_stuck_deletion_seconds",
		Help: "Age of the oldest stuck deletion that concerns a member; 0 if there is none.",
	}, []string{"cluster"})
	stuckDeletions = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_stuck_deletions",
		Help: "Deletions that concern a member and take longer than expected.",
	}, []string{"cluster"})
	leafBoundSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "xylem_claim_leaf_bound_seconds",
		Help:    "Time from a claim's placement in a member until its leaf claim is bound there: mostly scheduling and provisioning in the member.",
		Buckets: latencyBuckets,
	}, []string{"cluster"})
	hostBoundSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "xylem_claim_host_bound_seconds",
		Help:    "Time from when a leaf claim is bound until its root is bound in the host, or its promise is fulfilled: the latency that Xylem adds.",
		Buckets: latencyBuckets,
	}, []string{"cluster"})
)

// latencyBuckets range from 10 ms, which is faster than two API servers can respond, to 5 minutes.
var latencyBuckets = prometheus.ExponentialBuckets(0.01, 2, 16)

func init() {
	metrics.Registry.MustRegister(orphaned, orphanedSnapshots, snapshots, namespaces, notAdmitted, accounted, oldestStuck, stuckDeletions, leafBoundSeconds, hostBoundSeconds)
}

// CountOrphans reports a complete inventory in the metrics.
func CountOrphans(registration string, n int, at time.Time) {
	orphaned.WithLabelValues(registration).Set(float64(n))
	accounted.WithLabelValues(registration).Set(float64(at.Unix()))
}

// UncountOrphans removes a member's series when its orphans are unknown.
func UncountOrphans(registration string) { orphaned.DeleteLabelValues(registration) }

// CountSnapshotOrphans reports a complete inventory of snapshots in the metrics.
func CountSnapshotOrphans(registration string, n int) {
	orphanedSnapshots.WithLabelValues(registration).Set(float64(n))
}

// UncountSnapshotOrphans removes a member's series when its orphaned snapshots are unknown.
func UncountSnapshotOrphans(registration string) { orphanedSnapshots.DeleteLabelValues(registration) }

// CountSnapshots reports in the metrics how many of a member's snapshots are in each state.
func CountSnapshots(registration string, counts v1alpha1.SnapshotCounts) {
	for state, n := range map[string]int32{"ready": counts.Ready, "pending": counts.Pending, "deleting": counts.Deleting} {
		snapshots.WithLabelValues(registration, state).Set(float64(n))
	}
}

// UncountSnapshots removes the series of a member while the host does not serve snapshots.
func UncountSnapshots(registration string) {
	snapshots.DeletePartialMatch(prometheus.Labels{"cluster": registration})
}

// CountNamespaces reports in the metrics how many of the host's namespaces a member admits, and how
// many claims and Pods from other namespaces it contains.
func CountNamespaces(registration string, admitted, claims, pods int) {
	namespaces.WithLabelValues(registration).Set(float64(admitted))
	notAdmitted.WithLabelValues(registration, "PersistentVolumeClaim").Set(float64(claims))
	notAdmitted.WithLabelValues(registration, "Pod").Set(float64(pods))
}

// UncountNamespaces removes the series of a member that admits every namespace.
func UncountNamespaces(registration string) {
	namespaces.DeleteLabelValues(registration)
	notAdmitted.DeletePartialMatch(prometheus.Labels{"cluster": registration})
}

// CountStuck reports a member's stuck deletions in the metrics.
func CountStuck(registration string, n int, oldest time.Duration) {
	stuckDeletions.WithLabelValues(registration).Set(float64(n))
	oldestStuck.WithLabelValues(registration).Set(oldest.Seconds())
}

func forgetMetrics(registration string) {
	for _, vector := range []interface{ DeleteLabelValues(lvs ...string) bool }{orphaned, orphanedSnapshots, accounted, oldestStuck, stuckDeletions, leafBoundSeconds, hostBoundSeconds} {
		vector.DeleteLabelValues(registration)
	}
	UncountSnapshots(registration)
	UncountNamespaces(registration)
}
