package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// kill ends the manager as a crash does, and returns when it is dead.
func (r *Rig) kill() {
	_ = r.Manager.Kill() // SIGKILL: it can only fail because there is none
}

// Hold keeps the manager away once it has ended, until the function that it returns is
// called.
func (r *Rig) Hold() (release func()) {
	r.starting.Lock()
	return r.starting.Unlock
}

// Away keeps the manager away while something is done.
func (r *Rig) Away(do func() error) error {
	release := r.Hold()
	defer release()
	r.kill()
	return do()
}

// Again ends the manager as a crash does, and returns when its next life has all links:
// one of another epoch.
func (r *Rig) Again(ctx context.Context) error {
	before := r.Lives()
	r.kill()
	return harness.Await(ctx, "the manager's next life", func(ctx context.Context) error {
		if r.Lives() == before {
			return errors.New("it has not been started again")
		}
		return r.Linked(ctx)
	})
}

// Cluster is the cluster of that name.
func (r *Rig) Cluster(name string) *harness.Cluster {
	if name == Host {
		return r.Host
	}
	return r.Member(name)
}

// keep starts the manager again whenever it ends, as a Deployment would.
func (r *Rig) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.Manager.Done():
		}
		timer := time.NewTimer(r.downtime)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		r.starting.Lock()
		r.mu.Lock()
		r.started = time.Now()
		r.lives++
		r.mu.Unlock()
		_ = r.Manager.Start(ctx) // one that ends while it starts is seen above
		r.starting.Unlock()
	}
}

// Lives is how often the manager was started again so far.
func (r *Rig) Lives() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lives
}

// Linked is nil when the manager's present life holds the fence of every member
// that is registered, by what the members say.
func (r *Rig) Linked(ctx context.Context) error {
	r.mu.Lock()
	started := r.started
	r.mu.Unlock()
	if !r.Manager.Running() {
		return errors.New("the manager does not run")
	}
	var registrations v1alpha1.ClusterRegistrationList
	if err := r.Host.API.List(ctx, &registrations); err != nil {
		return fmt.Errorf("list registrations: %w", err)
	}
	for i := range registrations.Items {
		cr := &registrations.Items[i]
		if Apart(cr) {
			continue
		}
		name := r.nameOf(cr.Status.ClusterID)
		if name == "" {
			return fmt.Errorf("registration %s has no cluster yet", cr.Name)
		}
		var fence coordinationv1.Lease
		if err := r.Member(name).API.Get(ctx, client.ObjectKey{Namespace: v1alpha1.DefaultNamespace, Name: r.IDs[Host]}, &fence); err != nil {
			return fmt.Errorf("read the fence of %s: %w", name, err)
		}
		if fence.Spec.RenewTime == nil || fence.Spec.RenewTime.Time.Before(started) {
			return fmt.Errorf("the fence of %s has not been renewed since the manager began", name)
		}
	}
	return nil
}

// Apart reports whether a registration has no member: its cluster is another registration's,
// or it has never reached one.
func Apart(cr *v1alpha1.ClusterRegistration) bool {
	c := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionConnected)
	if c == nil {
		return false
	}
	return c.Reason == v1alpha1.ReasonDuplicateCluster || c.Reason == v1alpha1.ReasonUnreachable && cr.Status.ClusterID == ""
}

func (r *Rig) nameOf(id string) string {
	for name, known := range r.IDs {
		if known == id && name != Host {
			return name
		}
	}
	return ""
}
