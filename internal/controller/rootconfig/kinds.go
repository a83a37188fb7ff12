package rootconfig

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/refs"
)

// configKind contains what differs between ConfigMaps and Secrets.
type configKind[T client.Object] struct {
	// reference is the kind in refs.Reference.
	reference string
	empty     func() T
	// list lists all objects of this kind in a namespace.
	list      func(ctx context.Context, from client.Reader, namespace string) ([]T, error)
	translate func(root T, copies mirror.ConfigCopies) (T, error)
	// nameOfCopy returns the name of a root's copy.
	nameOfCopy func(copies mirror.ConfigCopies, root string) string
	// reduce replaces the contents by a digest, as the member's cache does. drift compares an object with
	// a reduced leaf.
	reduce func(T) T
	drift  func(want, leaf T) refs.ConfigDrift
	// fill copies want's contents to leaf.
	fill func(leaf, want T)
}

func configMapKind() configKind[*corev1.ConfigMap] {
	return configKind[*corev1.ConfigMap]{
		reference: refs.KindConfigMap,
		empty:     func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		list: func(ctx context.Context, from client.Reader, namespace string) ([]*corev1.ConfigMap, error) {
			var list corev1.ConfigMapList
			err := from.List(ctx, &list, client.InNamespace(namespace), index.ReadOnly)
			return pointersTo(list.Items), err
		},
		translate: refs.TranslateConfigMap, nameOfCopy: mirror.ConfigCopies.NameOfCopy,
		reduce: refs.ReduceConfigMap,
		drift:  refs.ConfigMapDriftOf,
		fill: func(leaf, want *corev1.ConfigMap) {
			leaf.Data, leaf.BinaryData, leaf.Immutable = want.Data, want.BinaryData, want.Immutable
		},
	}
}

func secretKind() configKind[*corev1.Secret] {
	return configKind[*corev1.Secret]{
		reference: refs.KindSecret,
		empty:     func() *corev1.Secret { return &corev1.Secret{} },
		list: func(ctx context.Context, from client.Reader, namespace string) ([]*corev1.Secret, error) {
			var list corev1.SecretList
			err := from.List(ctx, &list, client.InNamespace(namespace), index.ReadOnly)
			return pointersTo(list.Items), err
		},
		translate: refs.TranslateSecret, nameOfCopy: mirror.ConfigCopies.NameOfCopy,
		reduce: refs.ReduceSecret,
		drift:  refs.SecretDriftOf,
		fill: func(leaf, want *corev1.Secret) {
			leaf.Data, leaf.Immutable = want.Data, want.Immutable
		},
	}
}

// tokenKind is the kind of the Secrets with Pods' tokens.
func tokenKind() configKind[*corev1.Secret] {
	kind := secretKind()
	kind.translate = refs.TranslateTokens
	kind.nameOfCopy = func(_ mirror.ConfigCopies, root string) string { return root }
	return kind
}

func pointersTo[T any](items []T) []*T {
	all := make([]*T, 0, len(items))
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

// copyStamp copies want's stamp to leaf.
func copyStamp(leaf, want client.Object) {
	origin, _ := mirror.LeafOrigin(want)
	annotations := maps.Clone(leaf.GetAnnotations())
	maps.Copy(annotations, origin.StampAnnotations())
	leaf.SetAnnotations(annotations)
}
