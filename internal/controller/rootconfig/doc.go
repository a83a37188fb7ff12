// Package rootconfig copies the ConfigMaps and Secrets, including image pull secrets, that the
// host's Pods in a member refer to. (Admission in the host adds the pull secrets of ServiceAccounts
// to the Pods.) Its controller root_config reconciles the ConfigMap and the Secret with one name, and
// is the only writer of leaf ConfigMaps and Secrets.
//
// A copy is needed while an unfinished Pod in the host refers to it and runs or will run in the
// member. Such a Pod is bound to the member's virtual node. A Pod that is nominated to that node
// and has a claim placed in the member counts too, because its leaf may be pushed early. The copy
// is deleted when neither such a Pod nor a leaf Pod refers to it, so containers that are still
// stopping keep their files.
//
// A copy is named <name>.xylem-<digest> (mirror.ConfigCopies), and leaf Pods refer to that name. The
// root's own name is not safe: even after a check, the member could have another object of that
// name, and its kubelet would give that object to the Pod. The digest covers the host, the
// namespace's UID and the name, so a Pod never reads the copy of an earlier namespace. The
// annotation xylem.io/root names the root. The member's policy reserves the names of copies. Copies
// that earlier versions created have the names of their roots. Xylem updates them while a leaf Pod
// refers to them, and keeps them even if the root is gone, because the member could otherwise take
// over the name.
//
// A Pod is not pushed if it needs an object that the host lacks, a Secret of a type that is not
// copied, or an object that is too large (ReferenceMissing, SecretUnsupported, ReferenceTooLarge).
// A copy whose root has become too large keeps its contents. An optional reference is safe, because
// no other object has the copy's name. There are two exceptions: Pods use the member's own
// kube-root-ca.crt, and a Pod without pull secrets gets those of the member's default service
// account.
//
// If the member's registration has apiServer, a Pod's tokens for the host are in a Secret that is treated like such a copy
// (mirror.TokenSecretName). The controller requests the tokens as the virtual node, once the Pod is bound and its leaf refers
// to the Secret, and replaces them before they expire. With --secrets-access=Node, it also reads
// Secrets as the virtual node, so it copies them only after the Pod is bound.
//
// Xylem reads Secrets one by one, by name. Outside the manager's own namespace, it never lists or
// watches them, because that would require the permission to read all of them. As a kubelet does,
// it reads each one again when another Pod needs it, and at intervals. It writes only changes. A
// copy follows its root: it is re-created if it is immutable and the root was re-created, and
// deleted when the root is gone. Xylem never changes a foreign ConfigMap or Secret that has a
// copy's name, but reports it on the Pods that wait for the copy.
package rootconfig
