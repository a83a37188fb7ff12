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

// revisions contains the highest resourceVersion of each kind that the member's caches have received.
type revisions map[reflect.Type]string

// compared are the kinds that show a restore: those that a claim or a Pod has in the member.
var compared = map[reflect.Type]func() client.ObjectList{
	reflect.TypeFor[*corev1.Pod]():                   func() client.ObjectList { return &corev1.PodList{} },
	reflect.TypeFor[*corev1.PersistentVolumeClaim](): func() client.ObjectList { return &corev1.PersistentVolumeClaimList{} },
	reflect.TypeFor[*corev1.PersistentVolume]():      func() client.ObjectList { return &corev1.PersistentVolumeList{} },
}

// Seen records the resourceVersion of an object that a cache has received from the member.
func (f *Fence) Seen(object runtime.Object) {
	kind := reflect.TypeOf(object)
	seen, ok := object.(client.Object)
	if !ok || compared[kind] == nil {
		return
	}
	version := seen.GetResourceVersion()
	f.mu.Lock()
	defer f.mu.Unlock()
	if highest, known := f.seen[kind]; known && !lower(highest, version) {
		return
	}
	if f.seen == nil {
		f.seen = revisions{}
	}
	f.seen[kind] = version
}

// unfenced returns the highest resourceVersions of objects that the caches have received since the last
// renewal was sent. A backup that lacks earlier objects also lacks this renewal.
func (f *Fence) unfenced() revisions {
	f.mu.RLock()
	defer f.mu.RUnlock()
	since := maps.Clone(f.seen)
	maps.DeleteFunc(since, func(kind reflect.Type, version string) bool { return f.fenced[kind] == version })
	return since
}

// lacks reports whether the member was restored to a state before these resourceVersions. It reads the
// current revision of each kind with a list that has no items.
func (f *Fence) lacks(ctx context.Context, since revisions) (bool, error) {
	f.mu.RLock()
	member := f.member
	f.mu.RUnlock()
	for kind, version := range since {
		list := compared[kind]()
		if err := member.List(ctx, list, client.InNamespace(f.namespace), client.MatchingFields{"metadata.name": f.hostID}); err != nil {
			return false, access.Explain("read the member's revision", err)
		}
		if lower(list.GetResourceVersion(), version) {
			return true, nil
		}
	}
	return false, nil
}

// lower reports whether one resourceVersion is lower than another of the same kind. It returns false if
// they cannot be compared (KEP-5504).
func lower(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
