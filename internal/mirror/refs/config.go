package refs

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// configCopyMeta returns the metadata of the copy of a ConfigMap or Secret, without its origin.
func configCopyMeta(root metav1.ObjectMeta, copies mirror.ConfigCopies) metav1.ObjectMeta {
	meta := fields.TranslateMetadata(root)
	meta.Name = copies.NameOfCopy(root.Name)
	return meta
}

// TranslateConfigMap returns the copy of a root ConfigMap, including its origin. The error, if any, is
// a *Refusal.
func TranslateConfigMap(root *corev1.ConfigMap, copies mirror.ConfigCopies) (*corev1.ConfigMap, error) {
	root = root.DeepCopy()
	leaf := &corev1.ConfigMap{
		ObjectMeta: configCopyMeta(root.ObjectMeta, copies),
		Immutable:  root.Immutable,
		Data:       root.Data,
		BinaryData: root.BinaryData,
	}
	mirror.OriginForRoot(copies.HostID, root).StampLeaf(leaf)
	if mirror.IsLeafTooLarge(leaf) {
		return nil, tooLargeRefusal(KindConfigMap, root.Name)
	}
	return leaf, nil
}

func tooLargeRefusal(kind, name string) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonReferenceTooLarge, "%s %q is not copied to members: its keys, values, labels and annotations would take more than %s of the manager's memory. Remove entries, or divide the object into several smaller ones",
		kind, name, mirror.LeafSizeLimitText)
}

// TranslateSecret returns the copy of a root Secret, including its origin. The error, if any,
// is a *Refusal. Credentials for the host's own API server stay in the host.
func TranslateSecret(root *corev1.Secret, copies mirror.ConfigCopies) (*corev1.Secret, error) {
	if _, reserved := mirror.PodOfTokenSecret(root.Name); reserved {
		return nil, mirror.NewRefusal(v1alpha1.ReasonSecretUnsupported, "Secret %q is not copied to members: its name is reserved for the tokens of Pods. Use another name", root.Name)
	}
	switch root.Type { //nolint:exhaustive // all others are carried
	case corev1.SecretTypeServiceAccountToken:
		return nil, mirror.NewRefusal(v1alpha1.ReasonSecretUnsupported, "Secret %q is not copied to members: it is a service account token, which only the host accepts. Remove the Secret from the Pod", root.Name)
	case corev1.SecretTypeBootstrapToken:
		return nil, mirror.NewRefusal(v1alpha1.ReasonSecretUnsupported, "Secret %q is not copied to members: it is a bootstrap token, with which nodes join the host. Remove the Secret from the Pod", root.Name)
	}
	root = root.DeepCopy()
	leaf := &corev1.Secret{
		ObjectMeta: configCopyMeta(root.ObjectMeta, copies),
		Immutable:  root.Immutable,
		Data:       root.Data,
		Type:       root.Type,
	}
	mirror.OriginForRoot(copies.HostID, root).StampLeaf(leaf)
	if mirror.IsLeafTooLarge(leaf) {
		return nil, tooLargeRefusal(KindSecret, root.Name)
	}
	return leaf, nil
}

// TranslateTokens returns the Secret with a Pod's tokens in a member, including its origin.
func TranslateTokens(tokens *corev1.Secret, copies mirror.ConfigCopies) (*corev1.Secret, error) {
	leaf := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tokens.Namespace, Name: tokens.Name}, Data: tokens.Data, Type: corev1.SecretTypeOpaque}
	mirror.OriginForRoot(copies.HostID, tokens).StampLeaf(leaf)
	if mirror.IsLeafTooLarge(leaf) {
		return nil, tooLargeRefusal(KindSecret, tokens.Name)
	}
	return leaf, nil
}

// ConfigDrift is the change that a copied ConfigMap or Secret needs to match its root.
type ConfigDrift string

const (
	// ConfigCurrent means that the copy matches.
	ConfigCurrent ConfigDrift = "Current"
	// ConfigChanged means that data and immutable must be written.
	ConfigChanged ConfigDrift = "Changed"
	// ConfigImmutable means that the leaf is immutable and must be deleted and re-created.
	ConfigImmutable ConfigDrift = "Immutable"
)

// ConfigMapDriftOf compares a reduced leaf ConfigMap with the translation of its root, in the fields
// that are visible to Pods.
func ConfigMapDriftOf(want, leaf *corev1.ConfigMap) ConfigDrift {
	same := equality.Semantic.DeepEqual(ReduceConfigMap(want).BinaryData, leaf.BinaryData)
	return configDriftOf(same, want.Immutable, leaf.Immutable)
}

// SecretDriftOf compares a reduced leaf Secret with the translation of its root, in the fields that
// are visible to Pods. The type of a Secret is immutable.
func SecretDriftOf(want, leaf *corev1.Secret) ConfigDrift {
	reduced := ReduceSecret(want)
	if !bytes.Equal(reduced.Data[typeDigest], leaf.Data[typeDigest]) {
		return ConfigImmutable
	}
	return configDriftOf(equality.Semantic.DeepEqual(reduced.Data, leaf.Data), want.Immutable, leaf.Immutable)
}

func configDriftOf(same bool, want, has *bool) ConfigDrift {
	switch {
	case same && isTrue(want) == isTrue(has):
		return ConfigCurrent
	case isTrue(has):
		return ConfigImmutable
	default:
		return ConfigChanged
	}
}
