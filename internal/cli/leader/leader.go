// Package leader determines from the managers' Lease whether a manager is the leader.
package leader

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

const (
	// stale is how long after its last renewal a Lease counts as no longer held.
	stale = time.Minute
	// patience limits the request for the Lease.
	patience = 5 * time.Second
)

// Expired reports whether nobody holds a Lease. now is the time by the cluster's clock.
func Expired(lease *coordinationv1.Lease, now time.Time) bool {
	lasts := max(stale, 2*time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second)
	return ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil || now.Sub(lease.Spec.RenewTime.Time) > lasts
}

// Absence describes why no manager in a namespace is the leader. lease is nil if it does not exist.
func Absence(namespace string, lease *coordinationv1.Lease, now time.Time) string {
	return fmt.Sprintf("no manager is the leader: Lease \"%s/%s\" %s", namespace, v1alpha1.LeaderLease, Renewal(lease, now))
}

// Renewal describes when a Lease was last renewed. lease is nil if it does not exist.
func Renewal(lease *coordinationv1.Lease, now time.Time) string {
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

// Problem returns the Absence if no manager is the leader. It returns "" if one is, and if this is not
// known, because the user may not read the Lease, or because Xylem is installed in another namespace.
// The response's Date is the time by the cluster's clock, so this machine's clock does not matter.
func Problem(ctx context.Context, host *rest.Config, namespace string) string {
	lease, now, err := read(ctx, host, namespace)
	if err != nil || !Expired(lease, now) {
		return ""
	}
	return Absence(namespace, lease, now)
}

func read(ctx context.Context, host *rest.Config, namespace string) (*coordinationv1.Lease, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	server, _, err := rest.DefaultServerUrlFor(host)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("find the API server: %w", err)
	}
	through, err := rest.HTTPClientFor(host)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("create a client: %w", err)
	}
	url := server.JoinPath("apis", coordinationv1.SchemeGroupVersion.String(), "namespaces", namespace, "leases", v1alpha1.LeaderLease).String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("request the Lease: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := through.Do(request)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read the Lease: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // nothing is lost if this fails
	if response.StatusCode != http.StatusOK {
		return nil, time.Time{}, fmt.Errorf("read the Lease: %s", response.Status)
	}
	now, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("parse the response's Date: %w", err)
	}
	lease := &coordinationv1.Lease{}
	if err := json.NewDecoder(response.Body).Decode(lease); err != nil {
		return nil, time.Time{}, fmt.Errorf("parse the Lease: %w", err)
	}
	return lease, now, nil
}
