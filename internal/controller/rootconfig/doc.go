// Package rootconfig copies the ConfigMaps and Secrets, image pull secrets among them, that
// the host's Pods on a member refer to. (Those of ServiceAccounts are in the Pods:
// admission in the host puts them there.) Its two controllers, root_configmap and
// root_secret, are the only writers of leaf ConfigMaps and Secrets.
//
// A copy is needed while an unfinished Pod of the host refers to it, and is bound to the
// member's virtual node, or nominated for it with a claim that is placed in the member, so
// that its leaf may be pushed early. It is deleted when none does and the last leaf Pod
// that refers to it is gone: containers that are still ending keep their files.
//
// A copy's name is <name>.xylem-<digest> (mirror.Copies), and leaf Pods refer to that
// name. Under the root's own name, the member could have an object of its own, or get one
// after any check, and the kubelet would give it to the Pod. The digest is of the host, the
// UID of the namespace and the name, so that a Pod never reads the copy of an earlier
// namespace. The annotation xylem.io/root names the root. The member's policy reserves
// these names. Copies of earlier versions have their roots' names; they are kept current
// while a leaf Pod refers to them, even if the root is gone: otherwise the name would be
// the member's.
//
// A Pod that needs what the host lacks, or a Secret of a type that is not copied, is not
// pushed (ReferenceMissing, SecretUnsupported); an optional reference is safe, since
// nothing has the copy's name. There are two exceptions: kube-root-ca.crt is the member's,
// and a Pod without pull secrets gets those of the member's default service account.
//
// Secrets are read one by one, by name, and never listed or watched, which would take the
// right to read all of them. As a kubelet does, Xylem reads each again when another Pod
// needs it, and at intervals; nothing is written unless it differs. Only the manager's own
// namespace has its Secrets watched. A copy follows its root: it is replaced if it is
// immutable and the root was re-created, and deleted when the root is gone. A ConfigMap or
// Secret of somebody else with that name is never touched; the Pods that wait for it report
// it.
package rootconfig
