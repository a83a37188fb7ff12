package nodeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

// Failure is the error response to a request that does not get a stream. kubectl prints its
// message, one line of the form "what happened: why. What to do."
type Failure struct {
	Code    int
	Message string
	// Exact keeps Code unchanged in responses to requests for logs.
	Exact bool
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// NotFoundFailure reports that an object does not exist.
func NotFoundFailure(format string, args ...any) *Failure {
	return &Failure{Code: http.StatusNotFound, Message: fmt.Sprintf(format, args...)}
}

// UnknownPathFailure reports a path that does not belong to a Pod.
func UnknownPathFailure(message string) *Failure {
	return &Failure{Code: http.StatusNotFound, Message: message, Exact: true}
}

// BadRequestFailure reports a request that cannot succeed in this form.
func BadRequestFailure(format string, args ...any) *Failure {
	return &Failure{Code: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// ForbiddenFailure reports that the caller, or Xylem in a member, lacks a permission.
func ForbiddenFailure(format string, args ...any) *Failure {
	return &Failure{Code: http.StatusForbidden, Message: fmt.Sprintf(format, args...)}
}

// UnavailableFailure reports a failure that a retry may fix.
func UnavailableFailure(format string, args ...any) *Failure {
	return &Failure{Code: http.StatusServiceUnavailable, Message: fmt.Sprintf(format, args...)}
}

var (
	// ErrUnauthenticated reports that the caller has no valid credentials.
	ErrUnauthenticated = &Failure{Code: http.StatusUnauthorized, Message: "Unauthorized"}
	// ErrUnauthorized does not reveal whether the Pod or node exists.
	ErrUnauthorized = ForbiddenFailure("Forbidden: the request needs permission for nodes/proxy of the Pod's node. Ask an admin of the host cluster to grant the permission")
)

// messageLimit is the maximum size of a message in bytes.
const messageLimit = 2 << 10

// statusReasons maps an HTTP status to the reason in the Status object.
var statusReasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:         metav1.StatusReasonBadRequest,
	http.StatusUnauthorized:       metav1.StatusReasonUnauthorized,
	http.StatusForbidden:          metav1.StatusReasonForbidden,
	http.StatusNotFound:           metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:   metav1.StatusReasonMethodNotAllowed,
	http.StatusTooManyRequests:    metav1.StatusReasonTooManyRequests,
	http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:     metav1.StatusReasonTimeout,
}

// StatusJSON returns the failure as a JSON Status object, which kubectl prints as one line.
func (f *Failure) StatusJSON() []byte {
	reason, known := statusReasons[f.Code]
	if !known {
		reason = metav1.StatusReasonInternalError
	}
	content, err := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(f.Code), Reason: reason, Message: f.MessageLine(), //nolint:gosec // an HTTP status
	})
	if err != nil { // cannot happen: the object contains only strings and numbers
		return []byte(f.MessageLine())
	}
	return content
}

// MessageLine returns the message without characters that could break or repaint a terminal line.
func (f *Failure) MessageLine() string {
	return lineBreaks.Replace(mirror.PlainText(f.Message, messageLimit))
}

var lineBreaks = strings.NewReplacer("\n", " ", "\t", " ")

// logStatusCode is the status of the response to a request for logs. The API server forwards the text of
// a 400 or 500 response, and replaces the text of most others.
func (f *Failure) logStatusCode() int {
	switch {
	case f.Exact, f.Code == http.StatusUnauthorized, f.Code == http.StatusForbidden:
		return f.Code
	case f.Code == http.StatusNotFound, f.Code == http.StatusTooManyRequests, f.Code == http.StatusConflict:
		return http.StatusBadRequest
	case f.Code >= http.StatusInternalServerError:
		return http.StatusInternalServerError
	}
	return f.Code
}

// WriteResponse writes the failure as the response. Upgraded requests get a Status object, which
// stream clients expect. Requests for logs get plain text, as from a kubelet.
func (f *Failure) WriteResponse(w http.ResponseWriter, streams bool) {
	if reporter, ok := w.(interface{ Refused(why string) }); ok {
		reporter.Refused(f.MessageLine())
	}
	header := w.Header()
	clear(header)
	body, code := f.StatusJSON(), f.Code
	if streams {
		header.Set("Content-Type", "application/json")
	} else {
		body, code = []byte(f.MessageLine()), f.logStatusCode()
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may be gone
}

// MemberResponseFailure returns the failure that a member's response reports, with the token redacted.
func MemberResponseFailure(registration, token string, code int, body []byte) *Failure {
	var status metav1.Status
	message := string(body)
	if err := json.Unmarshal(body, &status); err == nil && status.Message != "" {
		message = status.Message
	}
	if token != "" {
		message = strings.ReplaceAll(message, token, strings.Repeat("*", 8))
	}
	if strings.TrimSpace(message) == "" {
		message = http.StatusText(code)
	}
	if code < http.StatusBadRequest {
		return &Failure{Code: http.StatusBadGateway, Message: fmt.Sprintf("member %q returned unexpected status %d: the address may not be that of an API server. Check the server in the member's kubeconfig", registration, code)}
	}
	return &Failure{Code: code, Message: fmt.Sprintf("member %q: %s", registration, message)}
}

// TooManyFailure reports that a limit has been reached.
func TooManyFailure(format string, args ...any) *Failure {
	return &Failure{Code: http.StatusTooManyRequests, Message: fmt.Sprintf(format, args...)}
}
