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

// kill kills the manager, and returns when the process has ended.
func (r *Rig) kill() {
	_ = r.Manager.Kill() // SIGKILL fails only if the process does not exist
}

// Hold prevents restarts of the manager until the caller calls release.
func (r *Rig) Hold() (release func()) {
	r.starting.Lock()
	return r.starting.Unlock
}

// Away keeps the manager stopped while a function runs.
func (r *Rig) Away(do func() error) error {
	release := r.Hold()
	defer release()
	r.kill()
	return do()
}

// Again kills the manager, and returns when the next process has connected to all members with a
// new epoch.
func (r *Rig) Again(ctx context.Context) error {
	before := r.Lives()
	r.kill()
	return harness.Await(ctx, "the restart of the manager", func(ctx context.Context) error {
		if r.Lives() == before {
			return errors.New("the manager has not been restarted")
		}
		return r.Linked(ctx)
	})
}

// Cluster returns the cluster with that name.
func (r *Rig) Cluster(name string) *harness.Cluster {
	if name == Host {
		return r.Host
	}
	return r.Member(name)
}

// keep restarts the manager whenever it ends, as a Deployment would.
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
		_ = r.Manager.Start(ctx) // the next iteration handles an exit during the start
		r.starting.Unlock()
	}
}

// Lives returns how often the manager has been restarted.
func (r *Rig) Lives() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lives
}

// Linked returns nil once the current manager process holds the fence of every registered member,
// according to live reads from the members.
func (r *Rig) Linked(ctx context.Context) error {
	r.mu.Lock()
	started := r.started
	r.mu.Unlock()
	if !r.Manager.Running() {
		return errors.New("the manager is not running")
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
			return fmt.Errorf("registration %s has not recorded a cluster ID yet", cr.Name)
		}
		var fence coordinationv1.Lease
		if err := r.Member(name).API.Get(ctx, client.ObjectKey{Namespace: v1alpha1.DefaultNamespace, Name: r.IDs[Host]}, &fence); err != nil {
			return fmt.Errorf("read the fence of %s: %w", name, err)
		}
		if fence.Spec.RenewTime == nil || fence.Spec.RenewTime.Time.Before(started) {
			return fmt.Errorf("the fence of %s has not been renewed since the manager started", name)
		}
	}
	return nil
}

// Apart reports whether a registration lacks a member, because another registration has its cluster
// or because it has never connected.
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
