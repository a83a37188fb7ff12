package fleet

import (
	"cmp"
	"context"
	"fmt"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof"
)

// OtherMembers returns the other registered members, according to a live list, so that the caller can
// check whether a claim was placed in one of them. A member without a Link, or with an unconfirmed
// restore, cannot be checked. Others omits registrations that Xylem rejects because another one serves
// their cluster, and registrations that are being deleted if nobody can ask their member any longer: the
// member never connected, or an admin forces the deregistration of an unreachable member.
func (f *Fleet) OtherMembers(ctx context.Context, self mirror.Member) ([]proof.OtherMember, error) {
	var all v1alpha1.ClusterRegistrationList
	if err := f.HostLive.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list the registered members: %w", err)
	}
	served := map[string]bool{self.ClusterID: true}
	others := make([]proof.OtherMember, 0, len(all.Items))
	away := map[string]string{} // cluster IDs by registration
	for i := range all.Items {
		cr := &all.Items[i]
		if cr.Name == self.Registration {
			continue
		}
		other, clusterID := f.otherMember(cr.Name)
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
			others = append(others, proof.OtherMember{Registration: name})
		}
	}
	return others, nil
}

// otherMember returns a member to be checked, and the ID of its cluster as last read. Without a Link, the
// member has no reader.
func (f *Fleet) otherMember(name string) (proof.OtherMember, string) {
	s := f.supervisorOf(name)
	if s == nil {
		return proof.OtherMember{Registration: name}, ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connection == nil {
		return proof.OtherMember{Registration: name}, s.state.Identity.ClusterID
	}
	return proof.OtherMember{Registration: name, Live: s.connection.Live, CheckUnrestored: newUnrestoredCheck(s.linkFence)}, s.state.Identity.ClusterID
}

// newUnrestoredCheck returns a check that fails if a member may lack objects because of a restore.
func newUnrestoredCheck(fence *fencing.Fence) func(context.Context) error {
	return func(ctx context.Context) error {
		if p := fence.SuspensionProblem(); p != nil && p.Reason == v1alpha1.ReasonMemberRestored {
			return p
		}
		return fence.CheckMemberCurrent(ctx)
	}
}
