package rootconfig

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
)

// kind is what differs between ConfigMaps and Secrets.
type kind[T client.Object] struct {
	// controller is the controller's name, reference the kind in mirror.Reference.
	controller, reference string
	empty                 func() T
	translate             func(root T, hostID string) (T, error)
	drift                 func(want, leaf T) mirror.ConfigDrift
	// fill puts the contents of want into leaf.
	fill func(leaf, want T)
}

func configMaps() kind[*corev1.ConfigMap] {
	return kind[*corev1.ConfigMap]{
		controller: NameConfigMap,
		reference:  mirror.KindConfigMap,
		empty:      func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		translate: func(root *corev1.ConfigMap, hostID string) (*corev1.ConfigMap, error) {
			return mirror.TranslateConfigMap(root, hostID), nil
		},
		drift: mirror.ConfigMapDrift,
		fill: func(leaf, want *corev1.ConfigMap) {
			leaf.Data, leaf.BinaryData, leaf.Immutable = want.Data, want.BinaryData, want.Immutable
		},
	}
}

func secrets() kind[*corev1.Secret] {
	return kind[*corev1.Secret]{
		controller: NameSecret,
		reference:  mirror.KindSecret,
		empty:      func() *corev1.Secret { return &corev1.Secret{} },
		translate:  mirror.TranslateSecret,
		drift:      mirror.SecretDrift,
		fill: func(leaf, want *corev1.Secret) {
			leaf.Data, leaf.Immutable = want.Data, want.Immutable
		},
	}
}

// restamp makes a copy that of the root that want was made from.
func restamp(leaf, want client.Object) {
	origin, _ := mirror.OriginOf(want)
	annotations := maps.Clone(leaf.GetAnnotations())
	maps.Copy(annotations, origin.Annotations())
	leaf.SetAnnotations(annotations)
}
