package fencing

import (
	"context"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member/access"
)

// kindRevisions contains the highest resourceVersion of each kind that the member's caches have received.
type kindRevisions map[reflect.Type]string

// comparedKinds are the kinds that show a restore: those that a claim or a Pod has in the member.
var comparedKinds = map[reflect.Type]func() client.ObjectList{
	reflect.TypeFor[*corev1.Pod]():                   func() client.ObjectList { return &corev1.PodList{} },
	reflect.TypeFor[*corev1.PersistentVolumeClaim](): func() client.ObjectList { return &corev1.PersistentVolumeClaimList{} },
	reflect.TypeFor[*corev1.PersistentVolume]():      func() client.ObjectList { return &corev1.PersistentVolumeList{} },
}

// RecordRevision records the resourceVersion of an object that a cache has received from the member.
func (f *Fence) RecordRevision(object runtime.Object) {
	kind := reflect.TypeOf(object)
	seen, ok := object.(client.Object)
	if !ok || comparedKinds[kind] == nil {
		return
	}
	version := seen.GetResourceVersion()
	f.mu.Lock()
	defer f.mu.Unlock()
	if highest, known := f.seenRevisions[kind]; known && !isLowerRevision(highest, version) {
		return
	}
	if f.seenRevisions == nil {
		f.seenRevisions = kindRevisions{}
	}
	f.seenRevisions[kind] = version
}

// revisionsSinceRenewal returns the highest resourceVersions of objects that the caches have received since the last
// renewal was sent. A backup that lacks earlier objects also lacks this renewal.
func (f *Fence) revisionsSinceRenewal() kindRevisions {
	f.mu.RLock()
	defer f.mu.RUnlock()
	since := maps.Clone(f.seenRevisions)
	maps.DeleteFunc(since, func(kind reflect.Type, version string) bool { return f.fencedRevisions[kind] == version })
	return since
}

// memberLacksRevisions reports whether the member was restored to a state before these resourceVersions. It reads the
// current revision of each kind with a list that has no items.
func (f *Fence) memberLacksRevisions(ctx context.Context, since kindRevisions) (bool, error) {
	f.mu.RLock()
	member := f.member
	f.mu.RUnlock()
	for kind, version := range since {
		list := comparedKinds[kind]()
		if err := member.List(ctx, list, client.InNamespace(f.namespace), client.MatchingFields{"metadata.name": f.hostID}); err != nil {
			return false, access.ExplainRequestError("read the member's revision", err)
		}
		if isLowerRevision(list.GetResourceVersion(), version) {
			return true, nil
		}
	}
	return false, nil
}

// isLowerRevision reports whether one resourceVersion is lower than another of the same kind. It returns false if
// they cannot be compared (KEP-5504).
func isLowerRevision(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
