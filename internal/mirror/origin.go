package mirror

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// Origin reports for which root object a leaf object was created: the stamp that
// every leaf object of Xylem's carries. An object without a whole stamp of this
// host is foreign, whatever its name.
type Origin struct {
	// HostID is the cluster ID of the host.
	HostID string
	// Root is the root object; its namespace is empty for cluster-scoped roots.
	Root types.NamespacedName
	// UID of the root object.
	UID types.UID
}

// OriginFor is the origin of the leaf objects of a root object.
func OriginFor(hostID string, root metav1.Object) Origin {
	return Origin{
		HostID: hostID,
		Root:   types.NamespacedName{Namespace: root.GetNamespace(), Name: root.GetName()},
		UID:    root.GetUID(),
	}
}

// OriginOf reads the stamp of a leaf object; false if it lacks any part of it,
// or is another object's.
func OriginOf(leaf metav1.Object) (Origin, bool) {
	labels, annotations := leaf.GetLabels(), leaf.GetAnnotations()
	o := Origin{HostID: labels[v1alpha1.LabelHost], UID: types.UID(annotations[v1alpha1.AnnotationRootUID])}
	if namespace, name, found := strings.Cut(annotations[v1alpha1.AnnotationRoot], "/"); found {
		o.Root = types.NamespacedName{Namespace: namespace, Name: name}
	} else {
		o.Root.Name = namespace
	}
	ok := o.HostID != "" && o.UID != "" && o.Root.Name != "" &&
		labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue
	// What has a namespace has its root's, and its name, or that of a copy: an object
	// that was copied to another name is unowned leaf, and who may write in one
	// namespace of a member cannot count as a leaf of another's (I8).
	if leaf.GetNamespace() != "" {
		ok = ok && o.Root.Namespace == leaf.GetNamespace() && (o.Root.Name == leaf.GetName() || isCopy(leaf, o.Root.Name))
	}
	return o, ok
}

// OriginIn is OriginOf for the leaf objects of one host: false for those of
// another.
func OriginIn(hostID string, leaf metav1.Object) (Origin, bool) {
	o, ok := OriginOf(leaf)
	return o, ok && o.HostID == hostID
}

// Labels of the stamp.
func (o Origin) Labels() map[string]string {
	return map[string]string{
		v1alpha1.LabelHost:      o.HostID,
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
	}
}

// Annotations of the stamp.
func (o Origin) Annotations() map[string]string {
	root := o.Root.Name
	if o.Root.Namespace != "" {
		root = o.Root.String()
	}
	return map[string]string{
		v1alpha1.AnnotationRoot:    root,
		v1alpha1.AnnotationRootUID: string(o.UID),
	}
}

// Stamp puts the origin on an object that is about to be created.
func (o Origin) Stamp(leaf metav1.Object) {
	leaf.SetLabels(fields.Merged(leaf.GetLabels(), o.Labels()))
	leaf.SetAnnotations(fields.Merged(leaf.GetAnnotations(), o.Annotations()))
}
