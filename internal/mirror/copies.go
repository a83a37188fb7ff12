package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ConfigCopies names the copies of a namespace's ConfigMaps and Secrets in a member. A copy does not use
// its root's name: the member may have, or later create, an object with that name, and the Pod
// would read it instead. If a namespace is deleted and re-created, the names of its copies change,
// because the earlier namespace may have belonged to another tenant.
type ConfigCopies struct {
	// HostID is the cluster ID of the host.
	HostID string
	// NamespaceUID is the UID of the root namespace.
	NamespaceUID types.UID
}

const (
	// copyNameMark separates the root's name from the digest. The member's admission policy reserves
	// names that end in copyNameMark and a digest.
	copyNameMark = ".xylem-"
	// copyDigestDigits is the number of hexadecimal digits of the digest. The root's name precedes it,
	// so only copies from namespaces of the same name, or with truncated names, could collide.
	copyDigestDigits = 8
)

// NameOfCopy returns the name of the copy of a ConfigMap or Secret: the root's name, truncated if
// necessary, and a digest of the host, the namespace's UID, and the whole name.
func (c ConfigCopies) NameOfCopy(root string) string {
	sum := sha256.Sum256([]byte(c.HostID + "/" + string(c.NamespaceUID) + "/" + root))
	return copyNamePrefix(root) + hex.EncodeToString(sum[:])[:copyDigestDigits]
}

// tokenSuffix follows the Pod's UID in TokenSecretName. The member's admission policy reserves names with this end.
const tokenSuffix = ".xylem-token" //nolint:gosec // the end of a name

// TokenSecretName returns the name of the Secret with a root Pod's tokens in a member. In its stamp, the Secret is its
// own root, because the host has no such Secret.
func TokenSecretName(pod types.UID) string { return string(pod) + tokenSuffix }

// PodOfTokenSecret returns the UID of the root Pod for a name from TokenSecretName. It returns false for all other names.
func PodOfTokenSecret(name string) (types.UID, bool) {
	uid, is := strings.CutSuffix(name, tokenSuffix)
	return types.UID(uid), is && uid != ""
}

func copyNamePrefix(root string) string {
	fits := validation.DNS1123SubdomainMaxLength - len(copyNameMark) - copyDigestDigits
	if len(root) > fits {
		root = strings.TrimRight(root[:fits], "-.")
	}
	return root + copyNameMark
}

// hasConfigCopyName reports whether an object has the name of a root's copy, for any UID of the namespace.
func hasConfigCopyName(leaf metav1.Object, root string) bool {
	switch leaf.(type) {
	case *corev1.ConfigMap, *corev1.Secret:
	default:
		return false
	}
	digest, found := strings.CutPrefix(leaf.GetName(), copyNamePrefix(root))
	if _, err := hex.DecodeString(digest); err != nil {
		return false
	}
	return found && len(digest) == copyDigestDigits
}
