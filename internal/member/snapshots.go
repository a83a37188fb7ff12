package member

import (
	"context"
	"fmt"
	"sync"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
	"github.com/xylem-io/xylem/internal/route"
)

// Snapshots are the VolumeSnapshots, contents and classes of a member. It may not serve them:
// then nothing is watched, and Problem says why.
type Snapshots struct {
	*route.Optional

	mu      sync.Mutex
	problem *mirror.Refusal
	waker   route.Waker
}

// NewSnapshots are those of which nothing is known yet.
func NewSnapshots() *Snapshots { return &Snapshots{Optional: route.NewOptional()} }

// Problem is why the snapshots cannot be read; known is false before the first attempt has
// ended.
func (s *Snapshots) Problem() (problem *mirror.Refusal, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Cache() != nil {
		return nil, true
	}
	return s.problem, s.problem != nil
}

// Fail records why they cannot be read.
func (s *Snapshots) Fail(problem *mirror.Refusal) {
	s.mu.Lock()
	changed := s.problem == nil || *s.problem != *problem
	s.problem = problem
	s.mu.Unlock()
	if changed {
		s.waker.Wake("")
	}
}

// Serve begins the sources, and enqueues what waited.
func (s *Snapshots) Serve(c cache.Cache) {
	s.Optional.Serve(c)
	s.waker.Wake("")
}

// Changes enqueues requests whenever another problem is known, or none any more.
func (s *Snapshots) Changes(requests route.ByName) source.Source { return s.waker.SourceOf(requests) }

// snapshotKinds are what has to be served.
func snapshotKinds() map[string]client.ObjectList {
	return map[string]client.ObjectList{
		"volumesnapshots": &snapshotv1.VolumeSnapshotList{}, "volumesnapshotcontents": &snapshotv1.VolumeSnapshotContentList{},
		"volumesnapshotclasses": &snapshotv1.VolumeSnapshotClassList{},
	}
}

// SnapshotsServed reports why a cluster's snapshots cannot be listed; nil if they can. An error
// tells nothing. who names the cluster in the message.
func SnapshotsServed(ctx context.Context, live client.Reader, who string) (*mirror.Refusal, error) {
	for resource, list := range snapshotKinds() {
		err := live.List(ctx, list, client.Limit(1))
		switch {
		case err == nil:
		case apierrors.IsNotFound(err):
			return &mirror.Refusal{Reason: v1alpha1.ReasonSnapshotsUnsupported, Message: fmt.Sprintf(
				"%s does not serve snapshot.storage.k8s.io/v1. Install the VolumeSnapshot CustomResourceDefinitions, the snapshot-controller and the csi-snapshotter of its driver there", who)}, nil
		case apierrors.IsForbidden(err):
			return &mirror.Refusal{Reason: v1alpha1.ReasonSnapshotsUnsupported, Message: fmt.Sprintf(
				"%s does not let Xylem list %s.snapshot.storage.k8s.io: %s. Grant the rights of config/member, or of the chart xylem-member, there", who, resource, sanitize.Plain(err.Error(), 500))}, nil
		default:
			return nil, fmt.Errorf("list %s: %w", resource, err)
		}
	}
	return nil, nil
}
