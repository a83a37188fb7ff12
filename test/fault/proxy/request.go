package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Request is a recorded write.
type Request struct {
	// Seq is the write's number in the log, from 1.
	Seq int
	// Cluster is the name of the proxy's cluster.
	Cluster string
	// UserAgent is the client's user agent.
	UserAgent string
	// Verb is create, update, patch, delete or deletecollection.
	Verb string
	// Group, Resource, Subresource, Namespace and Name identify the object. Name is empty if the
	// server generates it.
	Group, Resource, Subresource, Namespace, Name string
	// Status is the status code of the response, or 0 if none has been sent yet.
	Status int
	// Fault is the fault that was injected.
	Fault Fault
	// At is when the write passed the gate.
	At time.Time
}

// Key identifies the kind of write. It is the same in every run of a scenario, because it contains
// no generated names. For example: "host patch persistentvolumeclaims/status".
func (r Request) Key() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return r.Cluster + " " + r.Verb + " " + resource
}

// The verbs of read requests.
const (
	verbList  = "list"
	verbWatch = "watch"
	verbGet   = "get"
)

// writes maps the HTTP methods that write to their verbs.
var writes = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// parse parses method and URL as the API server does (k8s.io/apiserver/pkg/endpoints/request).
// Verb is empty if the URL does not identify a resource.
func parse(r *http.Request) Request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var q Request
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		q.Group, parts = parts[1], parts[3:]
	default:
		return Request{}
	}
	// Namespaces are cluster-scoped.
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		q.Namespace, parts = parts[1], parts[2:]
	}
	q.Resource = parts[0]
	if len(parts) > 1 {
		q.Name = parts[1]
	}
	if len(parts) > 2 {
		q.Subresource = strings.Join(parts[2:], "/")
	}
	q.Verb = verb(r, q)
	return q
}

func verb(r *http.Request, q Request) string {
	if v, ok := writes[r.Method]; ok {
		if v == "delete" && q.Name == "" {
			return "deletecollection"
		}
		return v
	}
	switch watch := r.URL.Query().Get("watch"); {
	case r.Method != http.MethodGet:
		return ""
	case watch == "true" || watch == "1":
		return verbWatch
	case q.Name == "":
		return verbList
	default:
		return verbGet
	}
}

// changes reports whether a request counts as a write.
func changes(r *http.Request, q Request) bool {
	if q.Verb == "" || writes[r.Method] == "" {
		return false
	}
	reviews := q.Group == "authentication.k8s.io" || q.Group == "authorization.k8s.io"
	return !reviews && q.Subresource != "token" && r.URL.Query().Get("dryRun") == ""
}

// protobufMagic is the prefix of the encoding of
// k8s.io/apimachinery/pkg/runtime/serializer/protobuf.
var protobufMagic = []byte("k8s\x00")

// nameIn returns the name of the object in a create request. In protobuf, field 1 of every kind is
// the metadata.
func nameIn(body []byte) string {
	var object metav1.PartialObjectMetadata
	if encoded, ok := bytes.CutPrefix(body, protobufMagic); ok {
		var unknown runtime.Unknown
		if unknown.Unmarshal(encoded) != nil || object.Unmarshal(unknown.Raw) != nil {
			return ""
		}
		return object.Name
	}
	if json.Unmarshal(body, &object) != nil {
		return ""
	}
	return object.Name
}
