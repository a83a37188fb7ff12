// Package nodeapi implements the part of the kubelet API that the host's API server uses
// for Pods on virtual nodes: logs, exec, attach, port-forward and resource metrics.
//
// A request passes through these steps, in this order:
//
//  1. Authentication, as in a kubelet: with a client certificate signed by the CA that the
//     host publishes, or with a bearer token (TokenReview). Anonymous requests fail. An address
//     whose tokens were refused too often gets 429 instead of another review.
//  2. The Pod, read live from the host. Its node must be a virtual node.
//  3. Authorization, as in a kubelet: nodes/proxy of that node (SubjectAccessReview). A
//     caller without this permission cannot find out whether the Pod exists. The connection is
//     unknown until then: the response closes it, and the listener closes the oldest unknown
//     connections if there are too many.
//  4. The leaf Pod, read live from the member. It must have the root's stamp and the
//     UID that root_pod recorded, in a namespace that belongs to this host (I4, I8).
//  5. A session. The number of sessions is limited for each member and in total (I7), and each
//     namespace gets a share of both. Metrics need no session.
//
// apimachinery's UpgradeAwareHandler then proxies the stream to the member's API server, over
// connections that the Link uses for nothing else. No code decodes or buffers the stream. The
// stream ends when the Pod, the Link or the client's connection ends, or after an idle timeout.
//
// The limit on the size of a member's responses does not apply to streams, because the manager does
// not decode or keep them: a slow client slows down the member, not the manager. The size of a
// response header and the time until it arrives are limited. The API addresses Pods by name only,
// so a request cannot name the leaf's UID. Only a member's admin could replace the leaf right after
// the check, and such an admin can exec in the member anyway.
//
// Subpackages implement the steps: auth (1, 3), call (parses the request), lookup (2, 4), stream
// (5), and failure (error responses). servingcert provides the certificates, and usage the resource
// metrics.
//
// Every replica serves the API. Only the leader has Links, so the other replicas respond with 503
// and name the leader.
//
// Its part auth authenticates and authorizes requests as a kubelet does: with a client
// certificate signed by the CA that the host publishes, or a bearer token (TokenReview), and
// then with the caller's permissions on the node's subresources (SubjectAccessReview). It rejects
// anonymous requests.
//
// Its part call parses the kubelet paths and queries that the host's API server sends, and
// translates them for the member's API. It rejects all names that Kubernetes does not allow.
//
// Its part failure builds the error responses to requests that do not get a stream: an HTTP status
// and one line, in the format that the host's API server forwards and kubectl prints.
//
// Its part lookup finds the leaf Pod for a request and the link to its member. The caller must have
// permission for the Pod's node, which must be a virtual node. The leaf must have the root's stamp
// and the UID that root_pod recorded, in a namespace that belongs to this host (I4, I8). Root and
// leaf are read live.
//
// Its part servingcert provides the serving certificates: a self-signed one, kept in memory
// and rotated, or one requested from the signer kubernetes.io/kubelet-serving.
// (controller-runtime's certwatcher reads an admin's own certificate.)
//
// Its part stream proxies requests to a member's API server with apimachinery's UpgradeAwareHandler.
// No code decodes or buffers a stream. The stream ends when the Pod, the Link or the client's
// connection ends, or after an idle timeout. The number of sessions is limited for each member and
// in total (I7), and each namespace gets a share of both.
//
// Its part usage reports the CPU and memory usage of the Pods on a virtual node to metrics-server,
// as a kubelet does at /metrics/resource.
//
// A kubelet reports CPU seconds as a counter, but the member's metrics API (metrics.k8s.io) reports
// a rate. A UsageMeter therefore multiplies each rate by the time since the previous sample and adds the
// product to a counter. metrics-server computes the same rate from two such counters. A counter
// begins with its first sample and reports the sample's time as the container's start time. When
// another replica begins to count, metrics-server assumes that the containers restarted, and
// reports no usage for one interval.
//
// A UsageMeter counts only leaves that Xylem pushed and whose UID is recorded on the root (I8), only the
// root's containers, and only samples taken after the leaf was created. It discards the rest of the
// member's response, regardless of its size.
package nodeapi
