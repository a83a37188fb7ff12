package mirror

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

// DataSource is the data source of a claim.
type DataSource struct {
	Group, Kind string
	// Namespace is empty for the claim's own namespace.
	Namespace string
	Name      string
}

// DataSourceOf returns the data source of a claim, and false if it has none. The API server keeps dataSource
// and dataSourceRef equal. Kinds that only populators support are only in dataSourceRef.
func DataSourceOf(claim *corev1.PersistentVolumeClaim) (DataSource, bool) {
	if ref := claim.Spec.DataSourceRef; ref != nil {
		return DataSource{ptr.Deref(ref.APIGroup, ""), ref.Kind, ptr.Deref(ref.Namespace, ""), ref.Name}, true
	}
	if ref := claim.Spec.DataSource; ref != nil {
		return DataSource{Group: ptr.Deref(ref.APIGroup, ""), Kind: ref.Kind, Name: ref.Name}, true
	}
	return DataSource{}, false
}

// HasDataSource reports whether a claim has a data source.
func HasDataSource(claim *corev1.PersistentVolumeClaim) bool {
	_, has := DataSourceOf(claim)
	return has
}

// SameDataSource reports whether a root and a leaf claim have data sources of the same kind and name, or both
// lack one.
func SameDataSource(root, leaf *corev1.PersistentVolumeClaim) bool {
	a, hasA := DataSourceOf(root)
	b, hasB := DataSourceOf(leaf)
	return hasA == hasB && a == b
}

// IsClaim reports whether the source is another claim, whose volume is cloned.
func (s DataSource) IsClaim() bool { return s.Group == "" && s.Kind == claimKind }

// IsSnapshot reports whether the source is a snapshot to restore.
func (s DataSource) IsSnapshot() bool { return s.Group == SnapshotGroup && s.Kind == SnapshotKind }

// IsInOneMember reports whether the source is in one member, so that the claim must be created there. A
// populator's source may be anywhere.
func (s DataSource) IsInOneMember() bool { return s.IsClaim() || s.IsSnapshot() }

// IndexKey returns the kind and name of the source, as the key of an index within one namespace.
func (s DataSource) IndexKey() string { return s.KindWithGroup() + "/" + s.Name }

// ClaimDataSource returns the source that is a claim in the same namespace.
func ClaimDataSource(name string) DataSource { return DataSource{Kind: claimKind, Name: name} }

// SnapshotDataSource returns the source that is a VolumeSnapshot in the same namespace.
func SnapshotDataSource(name string) DataSource {
	return DataSource{Group: SnapshotGroup, Kind: SnapshotKind, Name: name}
}

// ClaimDataSourceKey returns the IndexKey of a claim that is a source.
func ClaimDataSourceKey(name string) string { return ClaimDataSource(name).IndexKey() }

// SnapshotDataSourceKey returns the IndexKey of a snapshot that is a source.
func SnapshotDataSourceKey(name string) string { return SnapshotDataSource(name).IndexKey() }

// KindWithGroup returns the kind of the source with its group, such as Image.example.com.
func (s DataSource) KindWithGroup() string {
	if s.Group == "" {
		return s.Kind
	}
	return s.Kind + "." + s.Group
}

// String returns the name of the source for messages.
func (s DataSource) String() string {
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
	return fmt.Sprintf("%s %q", s.KindWithGroup(), name)
}

// DataSourceRecord identifies a claim's source at the time when Xylem selected the member.
type DataSourceRecord struct {
	// ClusterID identifies the member that has the source.
	ClusterID string
	// UID is the UID of the claim or snapshot in the host.
	UID types.UID
}

// DataSourceRecordOf returns the record on a root claim, and false if the claim has no record.
func DataSourceRecordOf(root *corev1.PersistentVolumeClaim) (DataSourceRecord, bool) {
	cluster, uid, found := strings.Cut(root.Annotations[v1alpha1.AnnotationSource], "/")
	return DataSourceRecord{cluster, types.UID(uid)}, found && cluster != "" && uid != ""
}

// AnnotationValue returns the record as an annotation's value.
func (r DataSourceRecord) AnnotationValue() string { return r.ClusterID + "/" + string(r.UID) }

// DataSourceUIDOfLeaf returns the UID, in the host, of a leaf claim's source, or "" if the leaf claim does not
// record it.
func DataSourceUIDOfLeaf(leaf *corev1.PersistentVolumeClaim) types.UID {
	return types.UID(leaf.Annotations[v1alpha1.AnnotationSource])
}
