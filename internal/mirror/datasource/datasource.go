package datasource

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

const (
	claimKind = "PersistentVolumeClaim"

	// SnapshotGroup is the API group of VolumeSnapshots.
	SnapshotGroup = "snapshot.storage.k8s.io"
	// SnapshotKind is the kind VolumeSnapshot.
	SnapshotKind = "VolumeSnapshot"
)

// Source is the data source of a claim.
type Source struct {
	Group, Kind string
	// Namespace is empty for the claim's own namespace.
	Namespace string
	Name      string
}

// Of returns the data source of a claim, and false if it has none. The API server keeps dataSource
// and dataSourceRef equal. Kinds that only populators support are only in dataSourceRef.
func Of(claim *corev1.PersistentVolumeClaim) (Source, bool) {
	if ref := claim.Spec.DataSourceRef; ref != nil {
		return Source{ptr.Deref(ref.APIGroup, ""), ref.Kind, ptr.Deref(ref.Namespace, ""), ref.Name}, true
	}
	if ref := claim.Spec.DataSource; ref != nil {
		return Source{Group: ptr.Deref(ref.APIGroup, ""), Kind: ref.Kind, Name: ref.Name}, true
	}
	return Source{}, false
}

// Has reports whether a claim has a data source.
func Has(claim *corev1.PersistentVolumeClaim) bool {
	_, has := Of(claim)
	return has
}

// Same reports whether a root and a leaf claim have data sources of the same kind and name, or both
// lack one.
func Same(root, leaf *corev1.PersistentVolumeClaim) bool {
	a, hasA := Of(root)
	b, hasB := Of(leaf)
	return hasA == hasB && a == b
}

// IsClaim reports whether the source is another claim, whose volume is cloned.
func (s Source) IsClaim() bool { return s.Group == "" && s.Kind == claimKind }

// IsSnapshot reports whether the source is a snapshot to restore.
func (s Source) IsSnapshot() bool { return s.Group == SnapshotGroup && s.Kind == SnapshotKind }

// Placed reports whether the source is in one member, so that the claim must be created there. A
// populator's source may be anywhere.
func (s Source) Placed() bool { return s.IsClaim() || s.IsSnapshot() }

// Key returns the kind and name of the source, as the key of an index within one namespace.
func (s Source) Key() string { return s.GroupKind() + "/" + s.Name }

// OfClaim returns the source that is a claim in the same namespace.
func OfClaim(name string) Source { return Source{Kind: claimKind, Name: name} }

// OfSnapshot returns the source that is a VolumeSnapshot in the same namespace.
func OfSnapshot(name string) Source {
	return Source{Group: SnapshotGroup, Kind: SnapshotKind, Name: name}
}

// ClaimKey returns the Key of a claim that is a source.
func ClaimKey(name string) string { return OfClaim(name).Key() }

// SnapshotKey returns the Key of a snapshot that is a source.
func SnapshotKey(name string) string { return OfSnapshot(name).Key() }

// GroupKind returns the kind of the source with its group, such as Image.example.com.
func (s Source) GroupKind() string {
	if s.Group == "" {
		return s.Kind
	}
	return s.Kind + "." + s.Group
}

// String returns the name of the source for messages.
func (s Source) String() string {
	name := s.Name
	if s.Namespace != "" {
		name = s.Namespace + "/" + name
	}
	switch {
	case s.IsClaim():
		return fmt.Sprintf("claim %q", name)
	case s.IsSnapshot():
		return fmt.Sprintf("snapshot %q", name)
	}
	return fmt.Sprintf("%s %q", s.GroupKind(), name)
}

// Record identifies a claim's source at the time when Xylem selected the member.
type Record struct {
	// ClusterID identifies the member that has the source.
	ClusterID string
	// UID is the UID of the claim or snapshot in the host.
	UID types.UID
}

// RecordOf returns the record on a root claim, and false if the claim has no record.
func RecordOf(root *corev1.PersistentVolumeClaim) (Record, bool) {
	cluster, uid, found := strings.Cut(root.Annotations[v1alpha1.AnnotationSource], "/")
	return Record{cluster, types.UID(uid)}, found && cluster != "" && uid != ""
}

// Annotation returns the record as an annotation's value.
func (r Record) Annotation() string { return r.ClusterID + "/" + string(r.UID) }

// OfLeaf returns the UID, in the host, of a leaf claim's source, or "" if the leaf claim does not
// record it.
func OfLeaf(leaf *corev1.PersistentVolumeClaim) types.UID {
	return types.UID(leaf.Annotations[v1alpha1.AnnotationSource])
}
