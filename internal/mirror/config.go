package mirror

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// TranslateConfigMap is the leaf ConfigMap of a root ConfigMap, origin included.
func TranslateConfigMap(root *corev1.ConfigMap, hostID string) *corev1.ConfigMap {
	root = root.DeepCopy()
	leaf := &corev1.ConfigMap{
		ObjectMeta: leafMeta(root.ObjectMeta),
		Immutable:  root.Immutable,
		Data:       root.Data,
		BinaryData: root.BinaryData,
	}
	OriginFor(hostID, root).Stamp(leaf)
	return leaf
}

// TranslateSecret is the leaf Secret of a root Secret, origin included. The
// error, if any, is a *Refusal: credentials for the host's own API server stay
// in the host.
func TranslateSecret(root *corev1.Secret, hostID string) (*corev1.Secret, error) {
	switch root.Type { //nolint:exhaustive // all others are carried
	case corev1.SecretTypeServiceAccountToken:
		return nil, &Refusal{Reason: v1alpha1.ReasonSecretUnsupported, Message: "Secret " + root.Name +
			" is a service account's token, which is worth nothing in a member and the host's key in a stranger's hand; API clients in Pods are a later capability, so take it out of the Pod"}
	case corev1.SecretTypeBootstrapToken:
		return nil, &Refusal{Reason: v1alpha1.ReasonSecretUnsupported, Message: "Secret " + root.Name +
			" is a bootstrap token, with which nodes join the host; take it out of the Pod"}
	}
	root = root.DeepCopy()
	leaf := &corev1.Secret{
		ObjectMeta: leafMeta(root.ObjectMeta),
		Immutable:  root.Immutable,
		Data:       root.Data,
		Type:       root.Type,
	}
	OriginFor(hostID, root).Stamp(leaf)
	return leaf, nil
}

// ConfigDrift says what a pushed ConfigMap or Secret needs to become its root's
// current translation.
type ConfigDrift string

const (
	// ConfigCurrent means nothing.
	ConfigCurrent ConfigDrift = "Current"
	// ConfigChanged means that data and immutable have to be written.
	ConfigChanged ConfigDrift = "Changed"
	// ConfigImmutable means that the leaf cannot be changed any more, but has to be deleted
	// and made anew.
	ConfigImmutable ConfigDrift = "Immutable"
)

// ConfigMapDrift compares a leaf ConfigMap with the translation of its root, in
// what Pods see of it.
func ConfigMapDrift(want, leaf *corev1.ConfigMap) ConfigDrift {
	same := equality.Semantic.DeepEqual(want.Data, leaf.Data) && equality.Semantic.DeepEqual(want.BinaryData, leaf.BinaryData)
	return configDrift(same, want.Immutable, leaf.Immutable)
}

// SecretDrift compares a leaf Secret with the translation of its root, in what
// Pods see of it. The type of a Secret is immutable.
func SecretDrift(want, leaf *corev1.Secret) ConfigDrift {
	if want.Type != leaf.Type {
		return ConfigImmutable
	}
	return configDrift(equality.Semantic.DeepEqual(want.Data, leaf.Data), want.Immutable, leaf.Immutable)
}

func configDrift(same bool, want, has *bool) ConfigDrift {
	switch {
	case same && isTrue(want) == isTrue(has):
		return ConfigCurrent
	case isTrue(has):
		return ConfigImmutable
	default:
		return ConfigChanged
	}
}
