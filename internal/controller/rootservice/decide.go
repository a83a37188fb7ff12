package rootservice

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
)

const (
	// minUnusedTime is how long a namespace must have been unused before Xylem deletes its Services in the member.
	// It is as long as for the namespace itself, so that replacing the only Pod does not change an address.
	minUnusedTime = 30 * time.Second
	// nameTakenInterval is the delay before Xylem tries again to create an object whose name a foreign object has.
	// No event reports the deletion of a foreign object.
	nameTakenInterval = 5 * time.Minute
	// maxServiceSlices is the maximum number of a Service's leaf EndpointSlices. By default, each has up to 100
	// endpoints.
	maxServiceSlices = 20
)

// observed is the input of decide. A nil field means that the object does not exist.
type observed struct {
	member mirror.Member
	rules  placement.Rules
	key    types.NamespacedName
	// root is the Service in the host. want is its translation, or nil if the Service must not exist in the
	// member. If its user does not know why, refusal is the reason.
	root, want *corev1.Service
	refusal    *mirror.Refusal
	// hostNamespace and memberNamespace are the Service's namespace in both clusters.
	hostNamespace   placement.Namespace
	memberNamespace *corev1.Namespace
	// used means that the namespace has, or will have, leaves in the member. unused is how long it has not been used.
	used   bool
	unused time.Duration
	// served means that Xylem may create Services in the member, and that the cache contains its leaves.
	served bool
	// leaf is the leaf Service. serviceNameTaken means that the member had a foreign Service with its name.
	leaf             *corev1.Service
	serviceNameTaken bool
	// serviceQuota and sliceQuota are what remains of the pauses after a quota's rejections in the namespace.
	serviceQuota, sliceQuota quotaPause
	// leafSlices are the leaf EndpointSlices, and wantSlices what they should be. slicesOmitted means that the host
	// has more.
	leafSlices, wantSlices []*discoveryv1.EndpointSlice
	slicesOmitted          bool
	// deletionSuspended means that deletions in the member are suspended.
	deletionSuspended bool
}

// quotaPause is a pause, and the rejection by a quota of the member that caused it.
type quotaPause struct {
	rest      time.Duration
	rejection error
}

// decision is the next step, one of the types below.
type decision interface{ isDecision() }

type (
	// doNothing means that there is nothing to do.
	doNothing struct{}
	// waitForUse keeps the Service of an unused namespace for a while.
	waitForUse struct{ rest time.Duration }
	// waitForName waits until a foreign object with the Service's name may be gone.
	waitForName struct{}
	// waitForQuota waits before Xylem tries again to create a Service or EndpointSlice. The Services of a namespace
	// share the pause, so that one of them tries for all.
	waitForQuota struct {
		leaf client.Object
		quotaPause
	}
	// createLeaf creates a Service or EndpointSlice.
	createLeaf struct{ leaf client.Object }
	// updateLeaf patches a Service or EndpointSlice.
	updateLeaf struct{ before, after client.Object }
	// replaceService deletes a Service whose address must change, so that Xylem creates it again.
	replaceService struct{}
	// deleteLeaf deletes a Service or EndpointSlice. withdrawn means that the Service must not exist any longer.
	deleteLeaf struct {
		leaf      client.Object
		withdrawn bool
	}
)

func (doNothing) isDecision()      {}
func (waitForUse) isDecision()     {}
func (waitForName) isDecision()    {}
func (waitForQuota) isDecision()   {}
func (createLeaf) isDecision()     {}
func (updateLeaf) isDecision()     {}
func (replaceService) isDecision() {}
func (deleteLeaf) isDecision()     {}

// decideServiceStep returns the next step for a Service and its EndpointSlices.
func decideServiceStep(o observed) decision {
	keeps := o.want != nil && (o.used || o.unused < minUnusedTime && !o.member.Leaving)
	switch {
	case !o.served, o.leaf != nil && o.leaf.DeletionTimestamp != nil:
		return doNothing{}
	case !keeps:
		return o.decideWithdrawal()
	case !o.used && o.leaf != nil:
		return waitForUse{minUnusedTime - o.unused}
	case !o.used, !o.isAllowed():
		return doNothing{}
	case o.leaf == nil && o.serviceNameTaken:
		return o.decideForeignService()
	case o.leaf == nil:
		return createUnlessPaused(o.want, o.serviceQuota)
	case mirror.IsHeadlessService(o.leaf) != mirror.IsHeadlessService(o.want):
		return replaceService{}
	case !mirror.IsLeafServiceCurrent(o.leaf, o.want):
		return updateLeaf{o.leaf, mirror.UpdateLeafService(o.leaf, o.want)}
	}
	return o.decideEndpointSlices()
}

// decideForeignService returns the next step while the member has a foreign Service with the name. It must not use the leaf
// EndpointSlices.
func (o observed) decideForeignService() decision {
	if len(o.leafSlices) > 0 && !o.deletionSuspended {
		return deleteLeaf{leaf: o.leafSlices[0]}
	}
	return waitForName{}
}

// decideWithdrawal returns the next step for a Service that must not exist in the member. EndpointSlices go first,
// because nothing else would delete them.
func (o observed) decideWithdrawal() decision {
	switch {
	case o.deletionSuspended:
		return doNothing{}
	case len(o.leafSlices) > 0:
		return deleteLeaf{o.leafSlices[0], true}
	case o.leaf != nil:
		return deleteLeaf{o.leaf, true}
	}
	return doNothing{}
}

// decideEndpointSlices returns the next step for the EndpointSlices of a Service that exists.
func (o observed) decideEndpointSlices() decision {
	wanted := make(map[string]*discoveryv1.EndpointSlice, len(o.wantSlices))
	for _, want := range o.wantSlices {
		wanted[want.Name] = want
	}
	for _, leaf := range o.leafSlices {
		want := wanted[leaf.Name]
		delete(wanted, leaf.Name)
		switch {
		case leaf.DeletionTimestamp != nil:
		case want == nil, want.AddressType != leaf.AddressType:
			return deleteLeaf{leaf: leaf}
		case !mirror.IsLeafEndpointSliceCurrent(leaf, want):
			return updateLeaf{leaf, mirror.UpdateLeafEndpointSlice(leaf, want)}
		}
	}
	for _, want := range o.wantSlices {
		if wanted[want.Name] != nil {
			return createUnlessPaused(want, o.sliceQuota)
		}
	}
	return doNothing{}
}

func createUnlessPaused(leaf client.Object, quota quotaPause) decision {
	if quota.rest > 0 {
		return waitForQuota{leaf, quota}
	}
	return createLeaf{leaf}
}
