package nodeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

// failure is why a request gets no stream. Its message is one line, which kubectl
// prints: what happened: why. What to do.
type failure struct {
	code    int
	message string
	// exact: the status is that also for logs.
	exact bool
}

// Error implements error.
func (f *failure) Error() string { return f.message }

func notFound(format string, args ...any) *failure {
	return &failure{code: http.StatusNotFound, message: fmt.Sprintf(format, args...)}
}

// noPath is for a request that is not about a Pod.
func noPath(message string) *failure {
	return &failure{code: http.StatusNotFound, message: message, exact: true}
}

func badRequest(format string, args ...any) *failure {
	return &failure{code: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

func forbidden(format string, args ...any) *failure {
	return &failure{code: http.StatusForbidden, message: fmt.Sprintf(format, args...)}
}

func unavailable(format string, args ...any) *failure {
	return &failure{code: http.StatusServiceUnavailable, message: fmt.Sprintf(format, args...)}
}

var (
	errUnauthenticated = &failure{code: http.StatusUnauthorized, message: "Unauthorized"}
	// errUnauthorized is the same whether or not there is such a Pod or node.
	errUnauthorized = forbidden("Forbidden: the request needs nodes/proxy of the Pod's node. Ask an admin of the host cluster")
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

// status is the failure as the API has it, which kubectl prints as one line.
func (f *failure) status() []byte {
	reason, known := reasons[f.code]
	if !known {
		reason = metav1.StatusReasonInternalError
	}
	content, err := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(f.code), Reason: reason, Message: f.line(), //nolint:gosec // an HTTP status
	})
	if err != nil { // strings and numbers
		return []byte(f.line())
	}
	return content
}

// line is the message without what could break or repaint a terminal's line.
func (f *failure) line() string {
	return lineBreaks.Replace(sanitize.Plain(f.message, messageLimit))
}

var lineBreaks = strings.NewReplacer("\n", " ", "\t", " ")

// logCode is the status of the answer to a request for logs. The API server repeats the
// text of an answer 400 and 500, and replaces that of most others by its own.
func (f *failure) logCode() int {
	switch {
	case f.exact, f.code == http.StatusUnauthorized, f.code == http.StatusForbidden:
		return f.code
	case f.code == http.StatusNotFound, f.code == http.StatusTooManyRequests, f.code == http.StatusConflict:
		return http.StatusBadRequest
	case f.code >= http.StatusInternalServerError:
		return http.StatusInternalServerError
	}
	return f.code
}

// write the failure as the answer to a request: as a Status for what is upgraded, since
// that is what clients of streams look for, and as plain text, as kubelets do, for logs.
func (f *failure) write(w http.ResponseWriter, streams bool) {
	if told, ok := w.(*writer); ok {
		told.session.why = f.line()
	}
	header := w.Header()
	clear(header)
	body, code := f.status(), f.code
	if streams {
		header.Set("Content-Type", "application/json")
	} else {
		body, code = []byte(f.line()), f.logCode()
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) //nolint:gosec // plain text or JSON, and marked so; whoever asked may be gone
}

// answered is the failure that an answer of a member says, without the token.
func answered(registration, token string, code int, body []byte) *failure {
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
		return &failure{code: http.StatusBadGateway, message: fmt.Sprintf("member %q answers with the unexpected status %d: something that is no API server may answer for it. Check the server in its kubeconfig", registration, code)}
	}
	return &failure{code: code, message: fmt.Sprintf("member %q: %s", registration, message)}
}

func tooMany(format string, args ...any) *failure {
	return &failure{code: http.StatusTooManyRequests, message: fmt.Sprintf(format, args...)}
}
