package leafcache

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/reduced"
)

// eventSubjects determines which of a member's events concern this host.
type eventSubjects struct {
	hostID              string
	namespaces, volumes toolscache.SharedIndexInformer
}

// setupInformers gets the informers that reduceEvent reads. Call it before the cache starts.
func (s *eventSubjects) setupInformers(ctx context.Context, c cache.Cache) error {
	var err, failed error
	s.namespaces, err = reduced.GetSharedInformer(ctx, c, &corev1.Namespace{}, cache.BlockUntilSynced(false))
	s.volumes, failed = reduced.GetSharedInformer(ctx, c, &corev1.PersistentVolume{}, cache.BlockUntilSynced(false))
	return errors.Join(err, failed)
}

// waitForInformers waits until the member's namespaces and volumes are in the cache.
func (s *eventSubjects) waitForInformers(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), s.namespaces.HasSynced, s.volumes.HasSynced) {
		return errors.New("the member's namespaces and volumes are not in the cache")
	}
	return nil
}

// reduceEvent keeps an event about a Pod or claim in a namespace that belongs to this host, about a volume
// that is not known to belong to others, or about a snapshot content. Xylem creates leaves only in a namespace
// that the cache contains, so it misses none of their events.
func (s *eventSubjects) reduceEvent(obj any) (any, error) {
	event, ok := obj.(*corev1.Event)
	if !ok || !s.concernsHost(&event.InvolvedObject) {
		return nil, nil //nolint:nilnil // the cache does not keep it
	}
	event.ManagedFields = nil
	about := &event.InvolvedObject
	for _, text := range []*string{&event.Namespace, &event.Reason, &event.Type, &event.Source.Component, &event.Source.Host, &event.ReportingController, &event.ReportingInstance,
		&about.Kind, &about.APIVersion, &about.Namespace, &about.Name} {
		*text = reduced.InternText(*text)
	}
	return event, nil
}

func (s *eventSubjects) concernsHost(about *corev1.ObjectReference) bool {
	switch about.Kind {
	case "Pod", "PersistentVolumeClaim":
		return s.ownsNamespace(about.Namespace)
	case "PersistentVolume":
		found, exists, err := s.volumes.GetIndexer().GetByKey(about.Name)
		pv, ok := found.(*corev1.PersistentVolume)
		return err != nil || !exists || !ok || pv.UID != about.UID || pv.Spec.ClaimRef == nil || s.ownsNamespace(pv.Spec.ClaimRef.Namespace) ||
			pv.Annotations[v1alpha1.AnnotationRoot] != ""
	case "VolumeSnapshotContent":
		return true
	}
	return false
}

// ownsNamespace reports whether a namespace belongs to this host.
func (s *eventSubjects) ownsNamespace(namespace string) bool {
	found, exists, err := s.namespaces.GetIndexer().GetByKey(namespace)
	ns, ok := found.(*corev1.Namespace)
	return err == nil && exists && ok && ns.Labels[v1alpha1.LabelHost] == s.hostID
}
