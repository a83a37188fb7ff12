package fleet

import (
	"cmp"
	"context"
	"fmt"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof/placing"
)

// Others returns the other registered members, according to a live list, so that the caller can
// check whether a claim was placed in one of them. A member without a Link, or with an unconfirmed
// restore, cannot be checked. Others omits registrations that Xylem rejects because another one serves
// their cluster, and registrations that are being deleted if nobody can ask their member any longer: the
// member never connected, or an admin forces the deregistration of an unreachable member.
func (f *Fleet) Others(ctx context.Context, self mirror.Member) ([]placing.Other, error) {
	var all v1alpha1.ClusterRegistrationList
	if err := f.HostLive.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list the registered members: %w", err)
	}
	served := map[string]bool{self.ClusterID: true}
	others := make([]placing.Other, 0, len(all.Items))
	away := map[string]string{} // cluster IDs by registration
	for i := range all.Items {
		cr := &all.Items[i]
		if cr.Name == self.Registration {
			continue
		}
		other, clusterID := f.other(cr.Name)
		if other.Live == nil {
			if cr.DeletionTimestamp != nil && (cr.Status.ClusterID == "" || cr.Annotations[v1alpha1.AnnotationForceDeregister] == "true") {
				continue
			}
			away[cr.Name] = cmp.Or(clusterID, cr.Status.ClusterID)
			continue
		}
		served[clusterID] = true
		others = append(others, other)
	}
	for name, clusterID := range away {
		if clusterID == "" || !served[clusterID] {
			others = append(others, placing.Other{Registration: name})
		}
	}
	return others, nil
}

// other returns a member to be checked, and the ID of its cluster as last read. Without a Link, the
// member has no reader.
func (f *Fleet) other(name string) (placing.Other, string) {
	s := f.supervisorOf(name)
	if s == nil {
		return placing.Other{Registration: name}, ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.linked == nil {
		return placing.Other{Registration: name}, s.state.Identity.ClusterID
	}
	return placing.Other{Registration: name, Live: s.linked.Live, Unrestored: unrestored(s.held)}, s.state.Identity.ClusterID
}

// unrestored returns a check that fails if a member may lack objects because of a restore.
func unrestored(fence *fencing.Fence) func(context.Context) error {
	return func(ctx context.Context) error {
		if p := fence.Suspended(); p != nil && p.Reason == v1alpha1.ReasonMemberRestored {
			return p
		}
		return fence.MemberCurrent(ctx)
	}
}
