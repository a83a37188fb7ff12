package nodeapi

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/streaming/pkg/httpstream"
)

// call is a request, as far as it names a container and what is wanted of it.
type call struct {
	// subresource of Pods in the member's API: log, exec, attach or portforward.
	subresource string
	pod         types.NamespacedName
	container   string // empty for port-forward
	// query for the member's API.
	query url.Values
}

// Subresources of Pods that are streamed.
const (
	subLog         = "log"
	subExec        = "exec"
	subAttach      = "attach"
	subPortForward = "portforward"
)

// routes map the first part of a kubelet's paths to what it is of Pods.
var routes = map[string]string{
	"containerLogs": subLog, "exec": subExec, "attach": subAttach, "portForward": subPortForward,
}

// streams reports whether the call is upgraded to a stream in both directions.
func (c call) streams() bool { return c.subresource != "" && c.subresource != subLog }

// verb that a caller needs on the node's proxy, and the Link's account on the subresource
// in the member. A kubelet goes by the method, which lets
// who may "get" exec by WebSocket; here whatever is not only read takes "create".
func (c call) verb() string {
	if c.streams() {
		return "create"
	}
	return "get"
}

// parse reads a request as the host's API server sends it. Names are held to what
// Kubernetes allows, so none of them can lead elsewhere in the member's API.
func parse(r *http.Request) (call, *failure) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if parts[0] == "metrics" || parts[0] == "stats" {
		return call{}, noPath("virtual nodes serve no metrics: members report rates of use, and metrics-server needs a kubelet's counters. Run metrics-server in the member, and kubectl top against the member")
	}
	subresource, known := routes[parts[0]]
	want := 4
	if subresource == subPortForward {
		want = 3
	}
	if !known || len(parts) != want || r.URL.RawPath != "" {
		return call{}, noPath("no such path: virtual nodes serve containerLogs, exec, attach and portForward. Check the path")
	}
	c := call{subresource: subresource, pod: types.NamespacedName{Namespace: parts[1], Name: parts[2]}}
	if want == 4 {
		c.container = parts[3]
	}
	for name, check := range map[string]func(string, bool) []string{
		c.pod.Namespace: validation.ValidateNamespaceName, c.pod.Name: validation.NameIsDNSSubdomain,
	} {
		if len(check(name, false)) > 0 {
			return c, badRequest("the path names no Pod: %q is not a valid name. Check the path", name)
		}
	}
	if want == 4 && len(validation.NameIsDNSLabel(c.container, false)) > 0 {
		return c, badRequest("the path names no container: %q is not a valid name. Check the path", c.container)
	}
	if failed := c.allows(r); failed != nil {
		return c, failed
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return c, badRequest("the query cannot be read: %v. Check the query", err)
	}
	c.query = c.translate(query)
	return c, nil
}

// allows reports what is wrong with the method of a request, or the lack of an upgrade.
func (c call) allows(r *http.Request) *failure {
	switch {
	case !c.streams() && r.Method != http.MethodGet, c.streams() && r.Method != http.MethodGet && r.Method != http.MethodPost:
		return &failure{code: http.StatusMethodNotAllowed, message: "method " + r.Method + " is not allowed here. Use kubectl"}
	case c.streams() && !httpstream.IsUpgradeRequest(r):
		return badRequest("%s needs a connection that is upgraded to SPDY or WebSocket, and the request asks for no upgrade. Check whether a proxy on the way removes the headers Connection and Upgrade", c.subresource)
	}
	return nil
}

// logParameters have the same names in a kubelet's and in the API server's paths.
var logParameters = []string{"follow", "previous", "timestamps", "sinceSeconds", "sinceTime", "tailLines", "limitBytes", "stream"}

// streamParameters map a kubelet's names to the API server's.
var streamParameters = map[string]string{"input": "stdin", "output": "stdout", "error": "stderr", "tty": "tty"}

// translate the query of a kubelet's path to that of the member's API. What is not known
// is left out.
func (c call) translate(from url.Values) url.Values {
	to := url.Values{}
	if c.container != "" {
		to.Set("container", c.container)
	}
	switch c.subresource {
	case subLog:
		for _, name := range logParameters {
			if values := from[name]; len(values) > 0 {
				to[name] = values
			}
		}
	case subExec, subAttach:
		for kubelets, name := range streamParameters {
			// What is not asked for has to be said: stdout and stderr default to true.
			to.Set(name, map[bool]string{true: "true", false: "false"}[from.Get(kubelets) == "1"])
		}
		if c.subresource == subExec {
			to["command"] = from["command"]
		}
	case subPortForward:
		for _, ports := range from["port"] {
			to["ports"] = append(to["ports"], strings.Split(ports, ",")...)
		}
	}
	return to
}

// forwarded are the headers that a request to the member keeps: those of the upgrade.
// Whoever asks here, the member gets no credentials, cookies or addresses of theirs.
var forwarded = []string{
	"Connection", "Upgrade", "X-Stream-Protocol-Version",
	"Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions",
}

// bearerProtocol starts the WebSocket subprotocol by which browsers send tokens.
const bearerProtocol = "base64url.bearer.authorization.k8s.io." //nolint:gosec // a prefix

// headers of the request to the member. Logs are never upgraded.
func (c call) headers(from http.Header) http.Header {
	to := http.Header{"Accept": {"application/json, */*"}}
	if !c.streams() {
		return to
	}
	for _, name := range forwarded {
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
