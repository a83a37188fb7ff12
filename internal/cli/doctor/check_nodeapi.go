package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/wording"
)

// CheckNodeAPI is the name of this check.
const CheckNodeAPI Check = "NodeAPI"

var nodeAPICheck = checkOf[*Facts]{name: CheckNodeAPI, read: readNodePaths, judge: infallible(judgeNodeAPI)}

// nodePath is the response to a request that the API server sends to the manager as the kubelet of a
// virtual node.
type nodePath struct {
	// Code is the HTTP status code, or 0 if there was no response.
	Code int
	// Own is true if the API server itself rejected the request, because the user lacks permission, or
	// because it does not proxy requests to the node's address. It still serves logs and exec there.
	Own bool
	// Detail is the error if the code is not 200.
	Detail string
}

// pathsMost is the maximum number of virtual nodes for which doctor checks the path from the API
// server to the manager.
const pathsMost = 100

// readNodePaths checks for each virtual node whether the API server reaches the manager as its kubelet.
func readNodePaths(ctx context.Context, r *inspect.Reader, f *Facts) {
	nodes, paths := f.Host.Nodes, map[string]nodePath{}
	var mu sync.Mutex
	var reads []func()
	for _, node := range nodes.Items[:min(pathsMost, len(nodes.Items))] {
		if node.Status.DaemonEndpoints.KubeletEndpoint.Port == 0 {
			continue
		}
		reads = append(reads, func() {
			path := readPathToManager(ctx, r, node.Name)
			path.Own = path.Own || path.Code != http.StatusOK && !isProxiedByAPIServer(&node)
			mu.Lock()
			defer mu.Unlock()
			paths[node.Name] = path
		})
	}
	inspect.RunReadsTogether(reads...)
	f.Host.Paths = paths
}

// isProxiedByAPIServer reports whether the API server proxies requests to a node's address. Local addresses, which
// test clusters use, are excluded (k8s.io/kubernetes/pkg/registry/core/node: isProxyableHostname).
func isProxiedByAPIServer(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool {
		ip := net.ParseIP(a.Address)
		return a.Type == corev1.NodeInternalIP && ip != nil && !ip.IsGlobalUnicast()
	})
}

// readPathToManager requests the health of a virtual node's kubelet, which is the manager, through the API
// server.
func readPathToManager(ctx context.Context, r *inspect.Reader, node string) nodePath {
	code, err := requestStatus(ctx, r, "/api/v1/nodes/", node, "proxy", "healthz")
	p := nodePath{Code: code}
	if err == nil {
		return p
	}
	p.Detail = inspect.Plain(err.Error())
	// A rejection by the API server's authorizer names the kind of the object, but a rejection by the
	// manager does not.
	p.Own = code == http.StatusForbidden && kindInErrorDetails(err) == "nodes"
	return p
}

// judgeNodeAPI checks whether the API server reaches the manager as the kubelet of virtual nodes.
func judgeNodeAPI(f *Facts) []Finding {
	h := &f.Host
	if !h.Nodes.Read || len(h.Nodes.Items) == 0 {
		return nil
	}
	if len(h.Paths) == 0 {
		return []Finding{passed("the node API is disabled (--node-api-bind-address), so kubectl logs, exec and port-forward do not work for Pods on virtual nodes")}
	}
	var reached int
	failed := map[string][]string{} // nodes by error; usually, all have the same error, because they share an address
	for _, node := range slices.Sorted(maps.Keys(h.Paths)) {
		switch p := h.Paths[node]; {
		case p.Code == http.StatusOK:
			reached++
		case p.Own: // the check is not possible
		case p.Code == http.StatusForbidden, p.Code == http.StatusUnauthorized:
			const rejects = "the manager rejects the API server, whose client certificate is missing or has no permission for nodes/proxy"
			failed[rejects] = append(failed[rejects], node)
		default:
			failed[p.Detail] = append(failed[p.Detail], node)
		}
	}
	var found []Finding
	for _, why := range slices.Sorted(maps.Keys(failed)) {
		found = append(found, problem(Error, fmt.Sprintf("kubectl logs and exec don't work for Pods on %s, because the API server can't reach the manager as the kubelet: %s", enumerateNamed("node", failed[why]), why),
			"Allow the control plane to reach the manager's Pods on the node API port (10250), including in NetworkPolicies and egress selectors. See charts/xylem/NODES.md."))
	}
	if len(found) == 0 && reached > 0 {
		found = append(found, passed("the API server reaches the manager as the kubelet of %s", wording.CountNoun(reached, "virtual node")))
	}
	return found
}

// requestStatus requests a path from the API server. The code is 0 if there was no response.
func requestStatus(ctx context.Context, r *inspect.Reader, path ...string) (code int, err error) {
	err = r.Raw.CoreV1().RESTClient().Get().AbsPath(path...).MaxRetries(0).Do(ctx).StatusCode(&code).Error()
	return code, err
}

// kindInErrorDetails returns the kind that an API server's error is about, or "".
func kindInErrorDetails(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	return status.Status().Details.Kind
}
