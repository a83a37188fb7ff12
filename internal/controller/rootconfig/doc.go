// Package rootconfig pushes along the ConfigMaps and Secrets, image pull
// secrets among them, that the host's Pods on a member refer to. (Those of
// ServiceAccounts stand in the Pods: admission in the host puts them there.)
//
// A copy is needed while a Pod of the host that has not ended refers to it, and
// is bound to the member's virtual node, or nominated for it with a claim that
// is placed in the member, so that its leaf may be pushed early. It is removed
// when none does and the last leaf Pod that refers to it is gone: containers
// that are still ending keep their files.
//
// A copy has a name of its own (mirror.Copies): neither an object of the member's own
// nor the copy of an earlier namespace can be taken for it, at any time. Copies of
// earlier versions have their roots' names. They are kept current while a leaf Pod
// refers to them, even if the root is gone: else the name would be the member's.
//
// Secrets of the host are read one by one, by name, and never listed or
// watched. Instead, as a kubelet does, each is read anew when another Pod
// comes to need it, and at intervals; nothing is written unless it differs. A
// copy follows its root: it is replaced if it is immutable and the root was made
// anew, and removed when the root is found to be gone. The ConfigMap or Secret
// of somebody else that has the name is never touched; the Pods that wait for it
// are told.
//
// There are two controllers, root_configmap and root_secret, and they are the
// only writers of leaf ConfigMaps and Secrets.
package rootconfig
