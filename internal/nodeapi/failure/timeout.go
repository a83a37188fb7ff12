package failure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// SetupTimeout bounds everything until a member begins to answer; users wait for it.
const SetupTimeout = 25 * time.Second

// ErrSetupTimeout is the cause of a context's end after SetupTimeout.
var ErrSetupTimeout = errors.New("no answer in time")

// Slow is what to answer after a failure: that the time was up, if it was.
func Slow(ctx context.Context, failed *Failure) *Failure {
	if errors.Is(context.Cause(ctx), ErrSetupTimeout) {
		return &Failure{Code: http.StatusGatewayTimeout, Message: fmt.Sprintf("no answer within %s. %s", SetupTimeout, failed.Message)}
	}
	return failed
}
