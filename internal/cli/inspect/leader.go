package inspect

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

const (
	// stale is how long after its last renewal a Lease counts as no longer held.
	leaseStale = time.Minute
	// patience limits the request for the Lease.
	leaderTimeout = 5 * time.Second
)

// LeaseExpired reports whether nobody holds a Lease. now is the time by the cluster's clock.
func LeaseExpired(lease *coordinationv1.Lease, now time.Time) bool {
	lasts := max(leaseStale, 2*time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second)
	return ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil || now.Sub(lease.Spec.RenewTime.Time) > lasts
}

// LeaderAbsence describes why no manager in a namespace is the leader. lease is nil if it does not exist.
func LeaderAbsence(namespace string, lease *coordinationv1.Lease, now time.Time) string {
	return fmt.Sprintf("no manager is the leader: Lease \"%s/%s\" %s", namespace, v1alpha1.LeaderLease, LeaseRenewal(lease, now))
}

// LeaseRenewal describes when a Lease was last renewed. lease is nil if it does not exist.
func LeaseRenewal(lease *coordinationv1.Lease, now time.Time) string {
	switch {
	case lease == nil:
		return "does not exist"
	case ptr.Deref(lease.Spec.HolderIdentity, "") == "":
		return "has no holder, because the last manager stopped cleanly"
	case lease.Spec.RenewTime == nil:
		return "was never renewed"
	}
	return fmt.Sprintf("was last renewed %s ago", now.Sub(lease.Spec.RenewTime.Time).Round(time.Second))
}

// LeaderProblem returns the LeaderAbsence if no manager is the leader. It returns "" if one is, and if this is not
// known, because the user may not read the Lease, or because Xylem is installed in another namespace.
// It compares times by the cluster's clock, and rounds to minutes, so that `kubectl xylem status
// --watch` does not print each second.
func LeaderProblem(ctx context.Context, host *rest.Config, namespace string) string {
	meter := &ClockMeter{PassiveClock: clock.RealClock{}}
	measured := rest.CopyConfig(host)
	measured.Wrap(meter.Wrap)
	measured.Timeout = leaderTimeout
	leases, err := coordinationclient.NewForConfig(measured)
	if err != nil {
		return ""
	}
	lease, err := leases.Leases(namespace).Get(ctx, v1alpha1.LeaderLease, metav1.GetOptions{})
	cluster := meter.Measurement()
	now := meter.Now().Add(cluster.Ahead)
	if err != nil || !cluster.Known || !LeaseExpired(lease, now) {
		return ""
	}
	if renewed := lease.Spec.RenewTime; renewed != nil {
		now = renewed.Add(now.Sub(renewed.Time).Round(time.Minute))
	}
	return LeaderAbsence(namespace, lease, now)
}
