package account

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

var (
	orphanedVolumes = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_orphaned_volumes",
		Help: "Leaf volumes in a member that have no root, as of the last complete comparison of both sides. Absent while unknown.",
	}, []string{"cluster"})
	orphanedSnapshots = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_orphaned_snapshots",
		Help: "Snapshots in a member that no host content represents, as of the last complete comparison of both sides. Absent while unknown, or if the host or the member does not serve snapshots.",
	}, []string{"cluster"})
	snapshotsByState = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_snapshots",
		Help: "Snapshots in a member that have a VolumeSnapshotContent in the host, by state: ready, pending (being taken, or unusable) or deleting. Absent if the host does not serve snapshots.",
	}, []string{"cluster", "state"})
	admittedNamespaces = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_namespaces_admitted",
		Help: "Host namespaces that a registration's spec.namespaces admits. Absent if the registration has no spec.namespaces.",
	}, []string{"cluster"})
	objectsNotAdmitted = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_objects_not_admitted",
		Help: "Claims and Pods in a member from namespaces that spec.namespaces does not admit, by kind. Absent if the registration has no spec.namespaces.",
	}, []string{"cluster", "kind"})
	volumesAccountedTime = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_volumes_accounted_timestamp_seconds",
		Help: "Time of the last complete comparison of a member's volumes with the host's, in seconds since 1970.",
	}, []string{"cluster"})
	oldestStuckSeconds = prometheus.NewGaugeVec(prometheus.GaugeOpts{
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
	metrics.Registry.MustRegister(orphanedVolumes, orphanedSnapshots, snapshotsByState, admittedNamespaces, objectsNotAdmitted, volumesAccountedTime, oldestStuckSeconds, stuckDeletions, leafBoundSeconds, hostBoundSeconds)
}

// SetOrphanMetrics reports a complete inventory in the metrics.
func SetOrphanMetrics(registration string, n int, at time.Time) {
	orphanedVolumes.WithLabelValues(registration).Set(float64(n))
	volumesAccountedTime.WithLabelValues(registration).Set(float64(at.Unix()))
}

// DeleteOrphanMetrics removes a member's series when its orphans are unknown.
func DeleteOrphanMetrics(registration string) { orphanedVolumes.DeleteLabelValues(registration) }

// SetOrphanedSnapshotMetrics reports a complete inventory of snapshots in the metrics.
func SetOrphanedSnapshotMetrics(registration string, n int) {
	orphanedSnapshots.WithLabelValues(registration).Set(float64(n))
}

// DeleteOrphanedSnapshotMetrics removes a member's series when its orphaned snapshots are unknown.
func DeleteOrphanedSnapshotMetrics(registration string) {
	orphanedSnapshots.DeleteLabelValues(registration)
}

// SetSnapshotMetrics reports in the metrics how many of a member's snapshots are in each state.
func SetSnapshotMetrics(registration string, counts v1alpha1.SnapshotCounts) {
	for state, n := range map[string]int32{"ready": counts.Ready, "pending": counts.Pending, "deleting": counts.Deleting} {
		snapshotsByState.WithLabelValues(registration, state).Set(float64(n))
	}
}

// DeleteSnapshotMetrics removes the series of a member while the host does not serve snapshots.
func DeleteSnapshotMetrics(registration string) {
	snapshotsByState.DeletePartialMatch(prometheus.Labels{"cluster": registration})
}

// SetNamespaceMetrics reports in the metrics how many of the host's namespaces a member admits, and how
// many claims and Pods from other namespaces it contains.
func SetNamespaceMetrics(registration string, admitted, claims, pods int) {
	admittedNamespaces.WithLabelValues(registration).Set(float64(admitted))
	objectsNotAdmitted.WithLabelValues(registration, "PersistentVolumeClaim").Set(float64(claims))
	objectsNotAdmitted.WithLabelValues(registration, "Pod").Set(float64(pods))
}

// DeleteNamespaceMetrics removes the series of a member that admits every namespace.
func DeleteNamespaceMetrics(registration string) {
	admittedNamespaces.DeleteLabelValues(registration)
	objectsNotAdmitted.DeletePartialMatch(prometheus.Labels{"cluster": registration})
}

// SetStuckDeletionMetrics reports a member's stuck deletions in the metrics.
func SetStuckDeletionMetrics(registration string, n int, oldest time.Duration) {
	stuckDeletions.WithLabelValues(registration).Set(float64(n))
	oldestStuckSeconds.WithLabelValues(registration).Set(oldest.Seconds())
}

func deleteMemberMetrics(registration string) {
	for _, vector := range []interface{ DeleteLabelValues(lvs ...string) bool }{orphanedVolumes, orphanedSnapshots, volumesAccountedTime, oldestStuckSeconds, stuckDeletions, leafBoundSeconds, hostBoundSeconds} {
		vector.DeleteLabelValues(registration)
	}
	DeleteSnapshotMetrics(registration)
	DeleteNamespaceMetrics(registration)
}
