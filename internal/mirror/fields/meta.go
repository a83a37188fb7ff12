package fields

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// MetaTable decides on the metadata of every leaf object.
var MetaTable = Table{
	Title:      "metadata of leaf objects (host to member)",
	PathPrefix: "metadata",
	StructType: reflect.TypeFor[metav1.ObjectMeta](),
	Fields: []Field{
		{"name", Keep, "Xylem finds the leaf by its root's name"},
		{"namespace", Keep, "the leaf's namespace has the same name"},
		{"labels", Translate, "copied to all leaves except Services and PodDisruptionBudgets, and later changes to Pods and bound claims, except `xylem.io/*`, so that selectors match leaves as they match roots; Xylem adds the origin's labels, including `app.kubernetes.io/managed-by`"},
		{"annotations", Translate, "copied like labels, except `xylem.io/*`, kubectl's last-applied configuration, and the keys in which Kubernetes keeps a cluster's own state (`pv.kubernetes.io/*`, `volume.kubernetes.io/*` and their beta forms, `snapshot.storage.kubernetes.io/*`, `kubernetes.io/config.*`); Xylem adds the origin's annotations"},
		{"generateName", Drop, "the host's API server has already generated the name"},
		{"selfLink", Drop, "removed from Kubernetes"},
		{"uid", Drop, "each cluster assigns its own; the origin's annotations record the root's"},
		{"resourceVersion", Drop, "each cluster assigns its own"},
		{"generation", Drop, "each cluster assigns its own"},
		{"creationTimestamp", Drop, "each cluster sets its own"},
		{"deletionTimestamp", Drop, "Xylem deletes the leaf instead of copying this field"},
		{"deletionGracePeriodSeconds", Drop, "Xylem deletes the leaf instead of copying this field"},
		{"ownerReferences", Drop, "owners are in the host; the member's garbage collector would delete a leaf whose owner does not exist in the member"},
		{"finalizers", Drop, "the controller that removes the finalizer runs in the host"},
		{"managedFields", Drop, "each cluster keeps its own"},
	},
}

var metaDecisions = MetaTable.CompileDecisions()

// TranslateMetadata returns the metadata of a root object's leaf, without its origin.
func TranslateMetadata(root metav1.ObjectMeta) metav1.ObjectMeta {
	leaf := *root.DeepCopy()
	ApplyDecisions(metaDecisions, &leaf, MetaTable.PathPrefix)
	leaf.Labels = keysCopiedToLeaf(root.Labels)
	leaf.Annotations = keysCopiedToLeaf(root.Annotations)
	return leaf
}

// clusterStatePrefixes are the prefixes of annotations that contain Kubernetes' state in one cluster. They
// would be wrong in another cluster. A Pod with kubernetes.io/config.mirror would even be treated
// as a kubelet's mirror Pod.
var clusterStatePrefixes = []string{
	"pv.kubernetes.io/",
	"volume.kubernetes.io/",
	"volume.beta.kubernetes.io/",
	"volume.alpha.kubernetes.io/",
	"snapshot.storage.kubernetes.io/",
	"kubernetes.io/config.",
}

// keysCopiedToLeaf returns a copy of the labels or annotations that Xylem copies from roots to leaves.
func keysCopiedToLeaf(from map[string]string) map[string]string {
	to := make(map[string]string, len(from))
	for key, value := range from {
		if IsCopiedToLeaf(key) {
			to[key] = value
		}
	}
	return to
}

// IsCopiedToLeaf reports whether Xylem copies a root's label or annotation with the given key to leaves.
func IsCopiedToLeaf(key string) bool {
	if v1alpha1.Reserved(key) || key == v1alpha1.LabelManagedBy || key == corev1.LastAppliedConfigAnnotation {
		return false
	}
	for _, prefix := range clusterStatePrefixes {
		if strings.HasPrefix(key, prefix) {
			return false
		}
	}
	return true
}

// MergeStringMaps returns a new map with the entries of both maps. Values of the second map take precedence.
func MergeStringMaps(a, b map[string]string) map[string]string {
	m := make(map[string]string, len(a)+len(b))
	for k, v := range a {
		m[k] = v
	}
	for k, v := range b {
		m[k] = v
	}
	return m
}
