package call

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/xylem-io/xylem/internal/nodeapi/failure"
)

// Call is a request, as far as it names a container and what is wanted of it.
type Call struct {
	// Subresource of Pods in the member's API: log, exec, attach or portforward.
	Subresource string
	Pod         types.NamespacedName
	Container   string // empty for port-forward
	// Query for the member's API.
	Query url.Values
}

// Subresources of Pods that are streamed.
const (
	Log         = "log"
	Exec        = "exec"
	Attach      = "attach"
	PortForward = "portforward"
)

// routes map the first part of a kubelet's paths to what it is of Pods.
var routes = map[string]string{
	"containerLogs": Log, "exec": Exec, "attach": Attach, "portForward": PortForward,
}

// Streams reports whether the call is upgraded to a stream in both directions.
func (c Call) Streams() bool { return c.Subresource != "" && c.Subresource != Log }

// Verb that a caller needs on the node's proxy, and the Link's account on the subresource
// in the member. A kubelet goes by the method, which lets
// who may "get" exec by WebSocket; here whatever is not only read takes "create".
func (c Call) Verb() string {
	if c.Streams() {
		return "create"
	}
	return "get"
}

// Parse reads a request as the host's API server sends it. Names are held to what
// Kubernetes allows, so none of them can lead elsewhere in the member's API.
func Parse(r *http.Request) (Call, *failure.Failure) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if parts[0] == "metrics" || parts[0] == "stats" {
		return Call{}, failure.NoPath("virtual nodes serve no metrics but those of resources (/metrics/resource/NODE). Check the path")
	}
	subresource, known := routes[parts[0]]
	want := 4
	if subresource == PortForward {
		want = 3
	}
	if !known || len(parts) != want || r.URL.RawPath != "" {
		return Call{}, failure.NoPath("no such path: virtual nodes serve containerLogs, exec, attach and portForward. Check the path")
	}
	c := Call{Subresource: subresource, Pod: types.NamespacedName{Namespace: parts[1], Name: parts[2]}}
	if want == 4 {
		c.Container = parts[3]
	}
	for name, check := range map[string]func(string, bool) []string{
		c.Pod.Namespace: validation.ValidateNamespaceName, c.Pod.Name: validation.NameIsDNSSubdomain,
	} {
		if len(check(name, false)) > 0 {
			return c, failure.BadRequest("the path names no Pod: %q is not a valid name. Check the path", name)
		}
	}
	if want == 4 && len(validation.NameIsDNSLabel(c.Container, false)) > 0 {
		return c, failure.BadRequest("the path names no container: %q is not a valid name. Check the path", c.Container)
	}
	if failed := c.allows(r); failed != nil {
		return c, failed
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return c, failure.BadRequest("the query cannot be read: %v. Check the query", err)
	}
	c.Query = c.translate(query)
	return c, nil
}

// allows reports what is wrong with the method of a request, or the lack of an upgrade.
func (c Call) allows(r *http.Request) *failure.Failure {
	switch {
	case !c.Streams() && r.Method != http.MethodGet, c.Streams() && r.Method != http.MethodGet && r.Method != http.MethodPost:
		return &failure.Failure{Code: http.StatusMethodNotAllowed, Message: "method " + r.Method + " is not allowed here. Use kubectl"}
	case c.Streams() && !httpstream.IsUpgradeRequest(r):
		return failure.BadRequest("%s needs a connection that is upgraded to SPDY or WebSocket, and the request asks for no upgrade. Check whether a proxy on the way removes the headers Connection and Upgrade", c.Subresource)
	}
	return nil
}

// logParameters have the same names in a kubelet's and in the API server's paths.
var logParameters = []string{"follow", "previous", "timestamps", "sinceSeconds", "sinceTime", "tailLines", "limitBytes", "stream"}

// streamParameters map a kubelet's names to the API server's.
var streamParameters = map[string]string{"input": "stdin", "output": "stdout", "error": "stderr", "tty": "tty"}

// translate the query of a kubelet's path to that of the member's API. What is not known
// is left out.
func (c Call) translate(from url.Values) url.Values {
	to := url.Values{}
	if c.Container != "" {
		to.Set("container", c.Container)
	}
	switch c.Subresource {
	case Log:
		for _, name := range logParameters {
			if values := from[name]; len(values) > 0 {
				to[name] = values
			}
		}
	case Exec, Attach:
		for kubelets, name := range streamParameters {
			// What is not asked for has to be said: stdout and stderr default to true.
			to.Set(name, map[bool]string{true: "true", false: "false"}[from.Get(kubelets) == "1"])
		}
		if c.Subresource == Exec {
			to["command"] = from["command"]
		}
	case PortForward:
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

// Headers of the request to the member. Logs are never upgraded.
func (c Call) Headers(from http.Header) http.Header {
	to := http.Header{"Accept": {"application/json, */*"}}
	if !c.Streams() {
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
