package nodeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// SetupTimeout bounds the time until a member begins to respond, because a user is waiting.
const SetupTimeout = 25 * time.Second

// ErrSetupTimeout is the cause of a context that SetupTimeout canceled.
var ErrSetupTimeout = errors.New("the member did not respond in time")

// TimeoutFailureOr returns a timeout failure if SetupTimeout canceled the context, and failed otherwise.
func TimeoutFailureOr(ctx context.Context, failed *Failure) *Failure {
	if errors.Is(context.Cause(ctx), ErrSetupTimeout) {
		return &Failure{Code: http.StatusGatewayTimeout, Message: fmt.Sprintf("no response within %s: %s", SetupTimeout, failed.Message)}
	}
	return failed
}
