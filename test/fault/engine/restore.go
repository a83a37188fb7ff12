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

// restoreTime bounds the restore of a cluster.
const restoreTime = 2 * time.Minute

// restore is a cluster that goes back, in the middle of a run, to what it was before.
type restore struct {
	cluster  string
	snapshot *controlplane.Snapshot
	// start has what begins it.
	start chan func(context.Context) error

	mu    sync.Mutex
	began time.Time
	done  time.Time // when it was finished
	err   error
}

// prepareRestore keeps the state of the cluster that is to be restored; nil if none is.
// The manager's next life has a later epoch than the state: no other sign that a cluster
// was restored is certain.
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

// wait makes the restore when it is begun.
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

// restoredBy is the cluster that a fault restores: the host, the member that is written to,
// or the first.
func restoredBy(f Fault) string {
	if f.Kind == RestoreHost || f.Kind == KillRestoreHost {
		return rig.Host
	}
	if cluster, _, _ := strings.Cut(f.Point.Key, "/"); cluster != rig.Host {
		return cluster
	}
	return rig.One
}

// begin restores the cluster, beside everything else; where the manager dies as well, it
// stays away until that is done.
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

// underWay: it has begun and is not finished.
func (t *restore) underWay() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.began.IsZero() && t.done.IsZero()
}

// made is when it was finished; zero before.
func (t *restore) made() (at time.Time, err error) {
	if t == nil {
		return at, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done, t.err
}

// restored waits until the manager has noticed that a cluster was restored and everything
// is at rest; then an admin confirms it, and everything comes to rest again. What the users
// did may be undone by it: there is no end to compare with, but all that is destroyed must
// have been proven.
func (b *bench) restored(ctx context.Context, w *scenario.World, to *restore) (end outcome, err error) {
	at, err := to.made()
	if err != nil {
		return end, err
	}
	end.restored = &oracle.Restore{Cluster: to.cluster, Began: to.began, At: at}
	// A member that the scenario has cut off is reached again: without an answer from it, there
	// is nothing to confirm. A driver that it delays continues: a disk whose PV is still to be
	// created is unowned until then.
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

// conditions are the reasons of the condition Connected, and its messages, by registration
// that has a member.
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

// suspended is nil once each registration that a restore concerns says so.
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
			return fmt.Errorf("%s was restored, and registration %s says %s: %s", cluster, cr.Name, c[0], c[1])
		}
	}
	return nil
}

// connected is nil once no registration waits for a confirmation.
func (b *bench) connected(ctx context.Context) error {
	all, err := b.conditions(ctx)
	if err != nil {
		return err
	}
	for cr, c := range all {
		if c[0] != v1alpha1.ReasonConnected {
			return fmt.Errorf("registration %s says %s: %s", cr.Name, c[0], c[1])
		}
	}
	return nil
}

// confirm annotates each registration with the token that its condition names.
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
