// Package nodeapi answers what the host's API server asks of kubelets, for the Pods on
// virtual nodes: logs, exec, attach and port-forward.
//
// A request passes these steps, in this order:
//
//  1. Authentication, as a kubelet's: a client certificate of the CA that the host
//     publishes for it, or a bearer token (TokenReview). Nobody is anonymous.
//  2. The Pod, read live in the host. Its node has to be a virtual node.
//  3. Authorization, as a kubelet's: nodes/proxy of that node (SubjectAccessReview). Who
//     lacks it does not learn whether there is such a Pod.
//  4. The leaf Pod, read live in the member: it has to carry the stamp of the root, and
//     the UID that root_pod recorded, in a namespace of this host (I4, I8).
//  5. A session, of which there are only so many for each member, and in total (I7).
//
// The stream then passes through apimachinery's UpgradeAwareHandler, from and to the
// member's API server, by connections that the Link uses for nothing else. Nothing
// decodes or buffers it. It ends with the Pod, the Link, the client, or an idle timeout.
//
// Streams are not weighed as other answers of a member are, since nothing decodes or keeps
// them: a client that reads slowly holds back the member, not the manager. The header of an
// answer is bounded, and so is the time until it comes. The API names Pods by name only, so
// the leaf's UID cannot be passed on: who replaces the leaf in the instant after the check
// is an admin of the member, who can exec there anyway.
//
// The steps are in packages below: auth (1, 3), call (what a request says), lookup (2, 4),
// stream (5), and failure (what is answered instead). servingcert has the certificates.
//
// Every replica serves. The Links are the leader's: another replica answers 503 and
// names the leader.
package nodeapi
