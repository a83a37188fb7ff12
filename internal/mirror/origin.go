package mirror

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// Origin identifies the root object for which a leaf object was created. Every leaf object has it
// as a stamp. An object without this host's complete stamp is foreign, regardless of its name.
type Origin struct {
	// HostID is the cluster ID of the host.
	HostID string
	// Root is the name of the root object. Cluster-scoped roots have no namespace.
	Root types.NamespacedName
	// UID is the UID of the root object.
	UID types.UID
}

// OriginForRoot returns the origin of a root object's leaf objects.
func OriginForRoot(hostID string, root metav1.Object) Origin {
	return Origin{
		HostID: hostID,
		Root:   types.NamespacedName{Namespace: root.GetNamespace(), Name: root.GetName()},
		UID:    root.GetUID(),
	}
}

// LeafOrigin reads the stamp of a leaf object. It returns false if the stamp is incomplete or was
// copied from another object.
func LeafOrigin(leaf metav1.Object) (Origin, bool) {
	labels, annotations := leaf.GetLabels(), leaf.GetAnnotations()
	o := Origin{HostID: labels[v1alpha1.LabelHost], UID: StampedRootUID(leaf)}
	if namespace, name, found := strings.Cut(annotations[v1alpha1.AnnotationRoot], "/"); found {
		o.Root = types.NamespacedName{Namespace: namespace, Name: name}
	} else {
		o.Root.Name = namespace
	}
	ok := o.HostID != "" && o.UID != "" && o.Root.Name != "" &&
		labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue
	// A namespaced leaf has its root's namespace, and the name of its root or of the root's copy.
	// So an object that was copied to another name is not a leaf, and users of one namespace in a
	// member cannot create an object that counts as a leaf of another namespace (I8).
	if leaf.GetNamespace() != "" {
		ok = ok && o.Root.Namespace == leaf.GetNamespace() && (o.Root.Name == leaf.GetName() || hasConfigCopyName(leaf, o.Root.Name))
	}
	return o, ok
}

// StampedRootUID returns the UID of the root in a leaf's stamp, even if the stamp is incomplete.
func StampedRootUID(leaf metav1.Object) types.UID {
	return types.UID(leaf.GetAnnotations()[v1alpha1.AnnotationRootUID])
}

// LeafOriginFromHost is LeafOrigin for the leaf objects of one host. It returns false for leaf objects of
// another host.
func LeafOriginFromHost(hostID string, leaf metav1.Object) (Origin, bool) {
	o, ok := LeafOrigin(leaf)
	return o, ok && o.HostID == hostID
}

// FieldManagerPrefix begins the names of Xylem's field managers.
const FieldManagerPrefix = "xylem-"

// createdByOthersManager is the field manager that MarkLeafCreatedByOthers leaves on a leaf object in the cache.
const createdByOthersManager = "copied"

// MarkLeafCreatedByOthers drops the managed fields of a stamped leaf object, and records there if somebody else
// created it, with Xylem's stamp: a tool that restores a backup, for example. Only Xylem's own writes have
// its field managers. A tool that also restores managed fields, as Velero does, restores their times, which are
// older than the object.
func MarkLeafCreatedByOthers(leaf metav1.Object) {
	entries := leaf.GetManagedFields()
	leaf.SetManagedFields(nil)
	created := leaf.GetCreationTimestamp()
	stamped := func(entry metav1.ManagedFieldsEntry) bool { return entryWritesStamp(entry, created) }
	if StampedRootUID(leaf) != "" && !slices.ContainsFunc(entries, stamped) {
		leaf.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: createdByOthersManager}})
	}
}

// maxAdmissionTime is how long the admission of an object may last. An API server sets the times of managed fields
// before the admission, and the creation time after it.
const maxAdmissionTime = time.Minute

// entryWritesStamp reports whether an entry shows that Xylem wrote the stamp of an object that was created at a time.
func entryWritesStamp(entry metav1.ManagedFieldsEntry, created metav1.Time) bool {
	return strings.HasPrefix(entry.Manager, FieldManagerPrefix) && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+v1alpha1.AnnotationRootUID+`"`) &&
		entry.Time != nil && !entry.Time.Add(maxAdmissionTime).Before(created.Time)
}

// IsLeafCreatedByOthers reports whether MarkLeafCreatedByOthers found that somebody else created a leaf object in the cache.
func IsLeafCreatedByOthers(leaf metav1.Object) bool {
	return slices.ContainsFunc(leaf.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == createdByOthersManager })
}

// StampLabels returns the labels of the stamp.
func (o Origin) StampLabels() map[string]string {
	return map[string]string{
		v1alpha1.LabelHost:      o.HostID,
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
	}
}

// StampAnnotations returns the annotations of the stamp.
func (o Origin) StampAnnotations() map[string]string {
	root := o.Root.Name
	if o.Root.Namespace != "" {
		root = o.Root.String()
	}
	return map[string]string{
		v1alpha1.AnnotationRoot:    root,
		v1alpha1.AnnotationRootUID: string(o.UID),
	}
}

// StampLeaf adds the origin to an object before its creation.
func (o Origin) StampLeaf(leaf metav1.Object) {
	leaf.SetLabels(fields.MergeStringMaps(leaf.GetLabels(), o.StampLabels()))
	leaf.SetAnnotations(fields.MergeStringMaps(leaf.GetAnnotations(), o.StampAnnotations()))
}

// IsStampedOn reports whether a leaf object has the stamp of this origin.
func (o Origin) IsStampedOn(leaf metav1.Object) bool {
	has, ours := LeafOriginFromHost(o.HostID, leaf)
	return ours && has == o
}
