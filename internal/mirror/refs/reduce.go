package refs

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// These are the only keys of reduced ConfigMaps and Secrets. They contain a slash, which the keys of
// real ones cannot contain.
const (
	dataDigest = "xylem.io/data"
	typeDigest = "xylem.io/type"
)

// ReduceConfigMap returns the part of a copied ConfigMap that decisions need: its stamp, and a digest
// of its contents. A member's cache keeps only this, because tenants of the host choose the contents.
// Do not compute a patch from it.
func ReduceConfigMap(leaf *corev1.ConfigMap) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: reduceMetadata(leaf.ObjectMeta), Immutable: leaf.Immutable,
		BinaryData: map[string][]byte{dataDigest: contentDigest(leaf.Data, leaf.BinaryData)},
	}
}

// ReduceSecret is ReduceConfigMap for Secrets. The digest also replaces the type, because its length is
// not limited.
func ReduceSecret(leaf *corev1.Secret) *corev1.Secret {
	sum := sha256.Sum256([]byte(leaf.Type))
	return &corev1.Secret{
		ObjectMeta: reduceMetadata(leaf.ObjectMeta), Immutable: leaf.Immutable,
		Data: map[string][]byte{dataDigest: contentDigest(nil, leaf.Data), typeDigest: sum[:]},
	}
}

// reduceMetadata keeps the fields that identify a copy and its root.
func reduceMetadata(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
		Labels: stampKeysOf(meta.Labels), Annotations: stampKeysOf(meta.Annotations),
	}
}

// stampKeysOf keeps the labels or annotations that belong to a copy's stamp.
func stampKeysOf(from map[string]string) map[string]string {
	to := map[string]string{}
	for _, key := range []string{v1alpha1.LabelHost, v1alpha1.LabelManagedBy, v1alpha1.AnnotationRoot, v1alpha1.AnnotationRootUID} {
		if value, has := from[key]; has {
			to[key] = value
		}
	}
	return to
}

// contentDigest returns a digest of a ConfigMap's or Secret's contents. Equal contents have equal digests.
func contentDigest(text map[string]string, binary map[string][]byte) []byte {
	h := sha256.New()
	writeEntries(h, text)
	writeEntries(h, binary)
	return h.Sum(nil)
}

// writeEntries writes the entries in the order of their keys. Lengths precede all parts, so different entries
// cannot look the same.
func writeEntries[V string | []byte](to hash.Hash, entries map[string]V) {
	length := func(n int) { _, _ = to.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) } //nolint:gosec // never negative
	length(len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		length(len(key))
		_, _ = io.WriteString(to, key)
		length(len(entries[key]))
		_, _ = to.Write([]byte(entries[key]))
	}
}
