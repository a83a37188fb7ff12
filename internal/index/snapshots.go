package index

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
)

const snapshotsByRootUID = "xylem.snapshots-by-root-uid"

// SetupSnapshotIndexes adds the indexes to the cache of a member's snapshots. Call it before the cache
// starts.
func SetupSnapshotIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	root := func(obj client.Object) []string {
		return nonEmptyKeys(obj.GetAnnotations()[v1alpha1.AnnotationRootUID])
	}
	return addIndexFields(ctx, indexer, []indexField{
		{&snapshotv1.VolumeSnapshot{}, snapshotsByRootUID, root},
		{&snapshotv1.VolumeSnapshotContent{}, snapshotsByRootUID, root},
	})
}

// LeafSnapshotsOf returns the member's VolumeSnapshots that are stamped with a root UID.
func LeafSnapshotsOf(ctx context.Context, r client.Reader, root types.UID) ([]snapshotv1.VolumeSnapshot, error) {
	var list snapshotv1.VolumeSnapshotList
	if err := r.List(ctx, &list, indexSelector{snapshotsByRootUID, string(root), ""}); err != nil {
		return nil, fmt.Errorf("list the leaf snapshots of %s: %w", root, err)
	}
	return list.Items, nil
}

// LeafContentsOf returns the member's contents that are stamped with a root UID.
func LeafContentsOf(ctx context.Context, r client.Reader, root types.UID) ([]snapshotv1.VolumeSnapshotContent, error) {
	var list snapshotv1.VolumeSnapshotContentList
	if err := r.List(ctx, &list, indexSelector{snapshotsByRootUID, string(root), ""}); err != nil {
		return nil, fmt.Errorf("list the leaf contents of %s: %w", root, err)
	}
	return list.Items, nil
}

// SnapshotsOfClaim returns a claim's VolumeSnapshots in the host.
func SnapshotsOfClaim(ctx context.Context, r client.Reader, claim types.NamespacedName) ([]snapshotv1.VolumeSnapshot, error) {
	var list snapshotv1.VolumeSnapshotList
	if err := r.List(ctx, &list, client.InNamespace(claim.Namespace), ReadOnly); err != nil {
		return nil, fmt.Errorf("list the VolumeSnapshots in namespace %s: %w", claim.Namespace, err)
	}
	var found []snapshotv1.VolumeSnapshot
	for i := range list.Items {
		if name := list.Items[i].Spec.Source.PersistentVolumeClaimName; name != nil && *name == claim.Name {
			found = append(found, list.Items[i])
		}
	}
	return found, nil
}

// HostContentsIn returns the host contents whose snapshot is, or may be, in a cluster.
func HostContentsIn(ctx context.Context, r client.Reader, clusterID string) ([]snapshotv1.VolumeSnapshotContent, error) {
	all, err := OwnHostContents(ctx, r)
	var found []snapshotv1.VolumeSnapshotContent
	for i := range all {
		if snapshot.ContentPlacedIn(&all[i]) == clusterID {
			found = append(found, all[i])
		}
	}
	return found, err
}

// OwnHostContents returns the host contents that have Xylem's driver.
func OwnHostContents(ctx context.Context, r client.Reader) ([]snapshotv1.VolumeSnapshotContent, error) {
	var list snapshotv1.VolumeSnapshotContentList
	if err := r.List(ctx, &list, ReadOnly); err != nil {
		return nil, fmt.Errorf("list VolumeSnapshotContents: %w", err)
	}
	var found []snapshotv1.VolumeSnapshotContent
	for i := range list.Items {
		if snapshot.IsXylemContent(&list.Items[i]) {
			found = append(found, list.Items[i])
		}
	}
	return found, nil
}

// ReadLiveSnapshot reads a VolumeSnapshot as evidence. ReadLiveSnapshot lists by name, because an API
// server that does not serve snapshots responds to a get with NotFound, as if the snapshot were
// missing. A list fails instead. ReadLiveContent does the same.
func ReadLiveSnapshot(ctx context.Context, r client.Reader, key types.NamespacedName) (*snapshotv1.VolumeSnapshot, error) {
	var list snapshotv1.VolumeSnapshotList
	if key.Name == "" {
		return nil, errors.New("read VolumeSnapshot: the name is empty")
	}
	if err := r.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}); err != nil {
		return nil, fmt.Errorf("read VolumeSnapshot %s: %w", key, err)
	}
	if len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // absence is an answer, as with FindObject
	}
	return &list.Items[0], nil
}

// ReadLiveContent reads a VolumeSnapshotContent as evidence.
func ReadLiveContent(ctx context.Context, r client.Reader, name string) (*snapshotv1.VolumeSnapshotContent, error) {
	var list snapshotv1.VolumeSnapshotContentList
	if name == "" {
		return nil, errors.New("read VolumeSnapshotContent: the name is empty")
	}
	if err := r.List(ctx, &list, client.MatchingFields{"metadata.name": name}); err != nil {
		return nil, fmt.Errorf("read VolumeSnapshotContent %s: %w", name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // absence is an answer, as with FindObject
	}
	return &list.Items[0], nil
}
