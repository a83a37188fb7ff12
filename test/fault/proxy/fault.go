package proxy

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fault is what the proxy does with a write or, as the argument of SetMode, with all traffic.
type Fault string

const (
	// Pass forwards the request.
	Pass Fault = ""
	// KillBefore calls OnKill and drops the write.
	KillBefore Fault = "KillBefore"
	// KillAfter forwards the write, reads the response, calls OnKill and drops the response.
	KillAfter Fault = "KillAfter"
	// Conflict responds with 409. Like the next four faults, it does not forward the write.
	Conflict Fault = "Conflict"
	// TooManyRequests responds with 429 and Retry-After: 1.
	TooManyRequests Fault = "TooManyRequests"
	// InternalError responds with 500.
	InternalError Fault = "InternalError"
	// Unavailable responds with 503.
	Unavailable Fault = "Unavailable"
	// Stall responds with 504 after 30 s, or when the proxy is disarmed.
	Stall Fault = "Stall"
	// Cut resets the connection without forwarding the write.
	Cut Fault = "Cut"
	// CutAfter forwards the write, and resets the connection instead of responding.
	CutAfter Fault = "CutAfter"
	// BlackHole freezes the connection with all its requests until the proxy is disarmed, and does
	// not forward the write.
	BlackHole Fault = "BlackHole"
)

const (
	// stallTime exceeds all of the manager's timeouts.
	stallTime = 30 * time.Second
	// retrySeconds is the Retry-After of TooManyRequests.
	retrySeconds = 1
)

var errInjected = errors.New("fault injected by the test")

// refusal returns the response that the request's fault injects, or nil.
func refusal(r Request) *apierrors.StatusError {
	resource := schema.GroupResource{Group: r.Group, Resource: r.Resource}
	switch r.Fault {
	case Conflict:
		return apierrors.NewConflict(resource, r.Name, errInjected)
	case TooManyRequests:
		return apierrors.NewTooManyRequests(errInjected.Error(), retrySeconds)
	case InternalError:
		return apierrors.NewInternalError(errInjected)
	case Unavailable:
		return apierrors.NewServiceUnavailable(errInjected.Error())
	case Stall:
		return apierrors.NewTimeoutError(errInjected.Error(), 0)
	default:
		return nil
	}
}

// answer writes an error response, as an API server would. It is always JSON. The content type
// makes clients accept it even if they prefer another encoding.
func answer(w http.ResponseWriter, refused *apierrors.StatusError) {
	status := refused.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // Encoding a Status never fails.
	}
	w.Header().Set("Content-Type", "application/json")
	if status.Reason == metav1.StatusReasonTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(retrySeconds))
	}
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body)
}
