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

// Fault is what happens to a write, or what the whole proxy does (SetMode).
type Fault string

const (
	// Pass forwards.
	Pass Fault = ""
	// KillBefore calls OnKill and drops the write.
	KillBefore Fault = "KillBefore"
	// KillAfter forwards, reads the answer, calls OnKill and withholds the answer.
	KillAfter Fault = "KillAfter"
	// Conflict answers 409 and does not forward; so do the next four.
	Conflict Fault = "Conflict"
	// TooManyRequests answers 429 with Retry-After: 1.
	TooManyRequests Fault = "TooManyRequests"
	// InternalError answers 500.
	InternalError Fault = "InternalError"
	// Unavailable answers 503.
	Unavailable Fault = "Unavailable"
	// Stall answers 504 after 30 s, or when the proxy is disarmed.
	Stall Fault = "Stall"
	// Cut resets the connection instead of forwarding.
	Cut Fault = "Cut"
	// CutAfter forwards, and resets the connection instead of answering.
	CutAfter Fault = "CutAfter"
	// BlackHole freezes the connection, with everything on it, until the proxy is
	// disarmed, and does not forward.
	BlackHole Fault = "BlackHole"
)

const (
	// stallTime is longer than any timeout of the manager's.
	stallTime = 30 * time.Second
	// retrySeconds is the Retry-After of TooManyRequests.
	retrySeconds = 1
)

var errInjected = errors.New("a fault of the test")

// refusal is the answer of a fault that answers by itself, nil for others.
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

// answer writes an error as API servers do. Clients that prefer another encoding
// take JSON by its content type.
func answer(w http.ResponseWriter, refused *apierrors.StatusError) {
	status := refused.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // A Status is always encoded.
	}
	w.Header().Set("Content-Type", "application/json")
	if status.Reason == metav1.StatusReasonTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(retrySeconds))
	}
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body)
}
