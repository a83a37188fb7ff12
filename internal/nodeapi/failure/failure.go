package failure

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

// Failure is why a request gets no stream. Its message is one line, which kubectl
// prints: what happened: why. What to do.
type Failure struct {
	Code    int
	Message string
	// Exact: the status is that also for logs.
	Exact bool
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// NotFound is for what is not there.
func NotFound(format string, args ...any) *Failure {
	return &Failure{Code: http.StatusNotFound, Message: fmt.Sprintf(format, args...)}
}

// NoPath is for a request that is not about a Pod.
func NoPath(message string) *Failure {
	return &Failure{Code: http.StatusNotFound, Message: message, Exact: true}
}

// BadRequest is for a request that cannot be met as it is.
func BadRequest(format string, args ...any) *Failure {
	return &Failure{Code: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// Forbidden is for what the caller, or Xylem in a member, may not do.
func Forbidden(format string, args ...any) *Failure {
	return &Failure{Code: http.StatusForbidden, Message: fmt.Sprintf(format, args...)}
}

// Unavailable is for what may work later.
func Unavailable(format string, args ...any) *Failure {
	return &Failure{Code: http.StatusServiceUnavailable, Message: fmt.Sprintf(format, args...)}
}

var (
	// ErrUnauthenticated is for who shows no valid credentials.
	ErrUnauthenticated = &Failure{Code: http.StatusUnauthorized, Message: "Unauthorized"}
	// ErrUnauthorized is the same whether or not there is such a Pod or node.
	ErrUnauthorized = Forbidden("Forbidden: the request needs nodes/proxy of the Pod's node. Ask an admin of the host cluster")
)

// messageLimit in bytes of a message.
const messageLimit = 2 << 10

// reasons by status code, of the Status that streams are answered with.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:         metav1.StatusReasonBadRequest,
	http.StatusUnauthorized:       metav1.StatusReasonUnauthorized,
	http.StatusForbidden:          metav1.StatusReasonForbidden,
	http.StatusNotFound:           metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:   metav1.StatusReasonMethodNotAllowed,
	http.StatusTooManyRequests:    metav1.StatusReasonTooManyRequests,
	http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:     metav1.StatusReasonTimeout,
}

// Status is the failure as the API has it, which kubectl prints as one line.
func (f *Failure) Status() []byte {
	reason, known := reasons[f.Code]
	if !known {
		reason = metav1.StatusReasonInternalError
	}
	content, err := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(f.Code), Reason: reason, Message: f.Line(), //nolint:gosec // an HTTP status
	})
	if err != nil { // strings and numbers
		return []byte(f.Line())
	}
	return content
}

// Line is the message without what could break or repaint a terminal's line.
func (f *Failure) Line() string {
	return lineBreaks.Replace(sanitize.Plain(f.Message, messageLimit))
}

var lineBreaks = strings.NewReplacer("\n", " ", "\t", " ")

// logCode is the status of the answer to a request for logs. The API server repeats the
// text of an answer 400 and 500, and replaces that of most others by its own.
func (f *Failure) logCode() int {
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

// Write the failure as the answer to a request: as a Status for what is upgraded, since
// that is what clients of streams look for, and as plain text, as kubelets do, for logs.
func (f *Failure) Write(w http.ResponseWriter, streams bool) {
	if told, ok := w.(interface{ Refused(why string) }); ok {
		told.Refused(f.Line())
	}
	header := w.Header()
	clear(header)
	body, code := f.Status(), f.Code
	if streams {
		header.Set("Content-Type", "application/json")
	} else {
		body, code = []byte(f.Line()), f.logCode()
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may be gone
}

// Answered is the failure that an answer of a member says, without the token.
func Answered(registration, token string, code int, body []byte) *Failure {
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
		return &Failure{Code: http.StatusBadGateway, Message: fmt.Sprintf("member %q answers with the unexpected status %d: something that is no API server may answer for it. Check the server in its kubeconfig", registration, code)}
	}
	return &Failure{Code: code, Message: fmt.Sprintf("member %q: %s", registration, message)}
}

// TooMany is for a limit that is reached.
func TooMany(format string, args ...any) *Failure {
	return &Failure{Code: http.StatusTooManyRequests, Message: fmt.Sprintf(format, args...)}
}
