package nodeapi

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/streaming/pkg/httpstream"
)

// Call is a parsed kubelet request: the container that it addresses, and the operation.
type Call struct {
	// Subresource is the Pod's subresource in the member's API: log, exec, attach or portforward.
	Subresource string
	Pod         types.NamespacedName
	Container   string // empty for port-forward
	// Query is the query of the request to the member's API.
	Query url.Values
}

// Subresources of Pods that the manager serves.
const (
	SubresourceLog         = "log"
	SubresourceExec        = "exec"
	SubresourceAttach      = "attach"
	SubresourcePortForward = "portforward"
)

// subresourceByPath maps the first segment of a kubelet path to a Pod subresource.
var subresourceByPath = map[string]string{
	"containerLogs": SubresourceLog, "exec": SubresourceExec, "attach": SubresourceAttach, "portForward": SubresourcePortForward,
}

// NeedsStream reports whether the call must be upgraded to a bidirectional stream.
func (c Call) NeedsStream() bool { return c.Subresource != "" && c.Subresource != SubresourceLog }

// RequiredVerb is the verb that the caller needs on nodes/proxy in the host, and that the Link's account
// needs on the subresource in the member. A kubelet derives the verb from the HTTP method, so its
// users with "get" can exec over WebSocket. Virtual nodes require "create" for every call except
// logs.
func (c Call) RequiredVerb() string {
	if c.NeedsStream() {
		return "create"
	}
	return "get"
}

// ParseCall parses a request from the host's API server. It rejects names that Kubernetes does not
// allow, so that no name can change the path in the member's API.
func ParseCall(r *http.Request) (Call, *Failure) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if parts[0] == "metrics" || parts[0] == "stats" {
		return Call{}, UnknownPathFailure("no such path: the only metrics of virtual nodes are the resource metrics, at /metrics/resource/NODE. Check the path")
	}
	subresource, known := subresourceByPath[parts[0]]
	want := 4
	if subresource == SubresourcePortForward {
		want = 3
	}
	if !known || len(parts) != want || r.URL.RawPath != "" {
		return Call{}, UnknownPathFailure("no such path: virtual nodes serve containerLogs, exec, attach and portForward. Check the path")
	}
	c := Call{Subresource: subresource, Pod: types.NamespacedName{Namespace: parts[1], Name: parts[2]}}
	if want == 4 {
		c.Container = parts[3]
	}
	for name, check := range map[string]func(string, bool) []string{
		c.Pod.Namespace: validation.ValidateNamespaceName, c.Pod.Name: validation.NameIsDNSSubdomain,
	} {
		if len(check(name, false)) > 0 {
			return c, BadRequestFailure("the path does not name a Pod: %q is not a valid name. Check the path", name)
		}
	}
	if want == 4 && len(validation.NameIsDNSLabel(c.Container, false)) > 0 {
		return c, BadRequestFailure("the path does not name a container: %q is not a valid name. Check the path", c.Container)
	}
	if failed := c.checkMethodAndUpgrade(r); failed != nil {
		return c, failed
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return c, BadRequestFailure("the query cannot be parsed: %v. Check the query", err)
	}
	c.Query = c.translateQuery(query)
	return c, nil
}

// checkMethodAndUpgrade returns a failure if the method is wrong or the request lacks an upgrade.
//
// A GET request for a stream needs a query. Users who may only get nodes/proxy can send GET requests
// through the API server's node proxy, which have the API server's identity and must not open streams. The
// node proxy drops the query of an upgrade (kubernetes/kubernetes#77142). kubectl's streams arrive as
// POST, because API servers translate its WebSockets. The streams of older WebSocket clients arrive as
// GET, with a query that the API server writes.
func (c Call) checkMethodAndUpgrade(r *http.Request) *Failure {
	switch {
	case !c.NeedsStream() && r.Method != http.MethodGet, c.NeedsStream() && r.Method != http.MethodPost && (r.Method != http.MethodGet || r.URL.RawQuery == ""):
		return &Failure{Code: http.StatusMethodNotAllowed, Message: "method " + r.Method + " is not allowed for this path. Use kubectl"}
	case c.NeedsStream() && !httpstream.IsUpgradeRequest(r):
		return BadRequestFailure("%s needs a connection upgraded to SPDY or WebSocket, but the request is not an upgrade request. Check whether a proxy in between removes the headers Connection and Upgrade", c.Subresource)
	}
	return nil
}

// logParameters have the same names in the kubelet's and the API server's APIs.
var logParameters = []string{"follow", "previous", "timestamps", "sinceSeconds", "sinceTime", "tailLines", "limitBytes", "stream"}

// streamParameters maps the kubelet's parameter names to the API server's.
var streamParameters = map[string]string{"input": "stdin", "output": "stdout", "error": "stderr", "tty": "tty"}

// translateQuery translates the query of a kubelet path to the member's API. It drops unknown
// parameters.
func (c Call) translateQuery(from url.Values) url.Values {
	to := url.Values{}
	if c.Container != "" {
		to.Set("container", c.Container)
	}
	switch c.Subresource {
	case SubresourceLog:
		for _, name := range logParameters {
			if values := from[name]; len(values) > 0 {
				to[name] = values
			}
		}
	case SubresourceExec, SubresourceAttach:
		for kubelets, name := range streamParameters {
			// stdout and stderr default to true, so set them to false explicitly.
			to.Set(name, map[bool]string{true: "true", false: "false"}[from.Get(kubelets) == "1"])
		}
		if c.Subresource == SubresourceExec {
			to["command"] = from["command"]
		}
	case SubresourcePortForward:
		for _, ports := range from["port"] {
			to["ports"] = append(to["ports"], strings.Split(ports, ",")...)
		}
	}
	return to
}

// forwardedHeaderNames lists the upgrade headers, which are the only headers that Xylem forwards to the
// member. The member does not receive the caller's credentials, cookies or addresses.
var forwardedHeaderNames = []string{
	"Connection", "Upgrade", "X-Stream-Protocol-Version",
	"Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions",
}

// bearerProtocol is the prefix of the WebSocket subprotocol in which browsers send a token.
const bearerProtocol = "base64url.bearer.authorization.k8s.io." //nolint:gosec // a prefix

// ForwardedHeaders returns the headers for the request to the member. Requests for logs are never upgraded.
func (c Call) ForwardedHeaders(from http.Header) http.Header {
	to := http.Header{"Accept": {"application/json, */*"}}
	if !c.NeedsStream() {
		return to
	}
	for _, name := range forwardedHeaderNames {
		if values := from.Values(name); len(values) > 0 {
			to[name] = values
		}
	}
	for _, values := range from.Values("Sec-Websocket-Protocol") {
		for protocol := range strings.SplitSeq(values, ",") {
			if protocol = strings.TrimSpace(protocol); !strings.HasPrefix(protocol, bearerProtocol) {
				to.Add("Sec-Websocket-Protocol", protocol)
			}
		}
	}
	return to
}
