package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/fault/oracle"
	"github.com/xylem-io/xylem/test/fault/proxy"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/fault/scenario"
)

// restoreTime is the timeout for the restore of a cluster.
const restoreTime = 2 * time.Minute

// restore restores a cluster to an earlier state in the middle of a run.
type restore struct {
	cluster  string
	snapshot *controlplane.Snapshot
	// start receives the restore to execute when it begins
	start chan func(context.Context) error

	mu    sync.Mutex
	began time.Time
	done  time.Time // when the restore ended
	err   error
}

// prepareRestore takes a snapshot of the cluster to restore, or returns nil if no fault is a
// restore. It then restarts the manager, so that the next epoch is later than the snapshot's,
// because only the epochs prove a restore with certainty.
func prepareRestore(ctx context.Context, r *rig.Rig, faults []Fault) (*restore, error) {
	i := slices.IndexFunc(faults, func(f Fault) bool { return slices.Contains(Restores, f.Kind) })
	if i < 0 {
		return nil, nil
	}
	to := &restore{cluster: restoredBy(faults[i]), start: make(chan func(context.Context) error, 1)}
	var err error
	if to.snapshot, err = r.Cluster(to.cluster).Snapshot(ctx); err != nil {
		return nil, err
	}
	go to.wait(ctx)
	return to, r.Again(ctx)
}

// wait waits until the restore begins, and executes it.
func (t *restore) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case do := <-t.start:
		ctx, cancel := context.WithTimeout(ctx, restoreTime)
		defer cancel()
		err := do(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.err, t.done = err, time.Now()
	}
}

// restoredBy returns the cluster that a fault restores: the host, the member that was written to,
// or the first member.
func restoredBy(f Fault) string {
	if f.Kind == RestoreHost || f.Kind == KillRestoreHost {
		return rig.Host
	}
	if cluster, _, _ := strings.Cut(f.Point.Key, "/"); cluster != rig.Host {
		return cluster
	}
	return rig.One
}

// begin starts the restore in the background. If the fault also kills the manager, the manager
// restarts only after the restore.
func (t *restore) begin(r *rig.Rig, kind Kind) {
	t.mu.Lock()
	t.began = time.Now()
	t.mu.Unlock()
	killed := kind == KillRestoreHost || kind == KillRestoreMember
	release := func() {}
	if killed {
		release = r.Hold()
	}
	t.start <- func(ctx context.Context) error {
		defer release()
		if killed {
			<-r.Manager.Done()
		}
		return r.Cluster(t.cluster).Restore(ctx, t.snapshot)
	}
}

// underWay reports whether the restore is in progress.
func (t *restore) underWay() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.began.IsZero() && t.done.IsZero()
}

// made returns the time at which the restore ended, or zero.
func (t *restore) made() (at time.Time, err error) {
	if t == nil {
		return at, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done, t.err
}

// restored waits until the manager has detected the restore and stopped writing. Then it confirms
// the restore, as an admin would, and waits again. The restore may have undone the users' actions,
// so the end state cannot be compared with the reference. But every destruction must be proven.
func (b *bench) restored(ctx context.Context, w *scenario.World, to *restore) (end outcome, err error) {
	at, err := to.made()
	if err != nil {
		return end, err
	}
	end.restored = &oracle.Restore{Cluster: to.cluster, Began: to.began, At: at}
	// Reconnect a member that the scenario disconnected, because the admin can confirm only a
	// restore that the registration reports. Let a delayed driver continue, because a disk is
	// unowned until its PV exists.
	for _, member := range []string{rig.One, rig.Two} {
		if err := errors.Join(w.Proxy(member).SetMode(proxy.Pass), w.Member(member).SetFaults()); err != nil {
			return end, err
		}
	}
	if _, end.unsettled, err = b.still(ctx, func(ctx context.Context) error { return b.suspended(ctx, to.cluster) }, w.Namespace); err != nil || end.unsettled != "" {
		return end, err
	}
	end.restored.Confirmed = time.Now()
	if err := b.confirm(ctx); err != nil {
		return end, err
	}
	end.quiet, end.unsettled, err = b.still(ctx, func(ctx context.Context) error {
		return errors.Join(b.Linked(ctx), b.connected(ctx))
	}, w.Namespace)
	return end, err
}

// conditions returns the Connected condition's reason and message of each registration that has a
// member.
func (b *bench) conditions(ctx context.Context) (map[*v1alpha1.ClusterRegistration][2]string, error) {
	var list v1alpha1.ClusterRegistrationList
	if err := b.Host.API.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list registrations: %w", err)
	}
	all := map[*v1alpha1.ClusterRegistration][2]string{}
	for i := range list.Items {
		if rig.Apart(&list.Items[i]) {
			continue
		}
		all[&list.Items[i]] = [2]string{}
		if c := meta.FindStatusCondition(list.Items[i].Status.Conditions, v1alpha1.ConditionConnected); c != nil {
			all[&list.Items[i]] = [2]string{c.Reason, c.Message}
		}
	}
	return all, nil
}

// suspended returns nil once each affected registration reports the restore.
func (b *bench) suspended(ctx context.Context, cluster string) error {
	all, err := b.conditions(ctx)
	if err != nil {
		return err
	}
	for cr, c := range all {
		want := v1alpha1.ReasonHostRestored
		if cluster != rig.Host {
			want = v1alpha1.ReasonMemberRestored
		}
		if (cluster == rig.Host || cr.Status.ClusterID == b.IDs[cluster]) && c[0] != want {
			return fmt.Errorf("%s was restored, but registration %s reports %s, want %s: %s", cluster, cr.Name, c[0], want, c[1])
		}
	}
	return nil
}

// connected returns nil once no registration waits for a confirmation.
func (b *bench) connected(ctx context.Context) error {
	all, err := b.conditions(ctx)
	if err != nil {
		return err
	}
	for cr, c := range all {
		if c[0] != v1alpha1.ReasonConnected {
			return fmt.Errorf("registration %s reports %s, want %s: %s", cr.Name, c[0], v1alpha1.ReasonConnected, c[1])
		}
	}
	return nil
}

// confirm annotates each registration with the token in its condition.
func (b *bench) confirm(ctx context.Context) error {
	all, err := b.conditions(ctx)
	if err != nil {
		return err
	}
	for cr, c := range all {
		_, token, found := strings.Cut(c[1], v1alpha1.AnnotationConfirmRestore+"=")
		if !found {
			continue
		}
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationConfirmRestore, token)
		if err := b.Host.API.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", body)); err != nil {
			return fmt.Errorf("confirm the restore at %s: %w", cr.Name, err)
		}
	}
	return nil
}
