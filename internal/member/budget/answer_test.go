package budget

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
)

type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {JSONType}}, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

// Renewals of the fence do not wait behind the lists of the caches.
func TestFenceDoesNotWait(t *testing.T) {
	limiter := NewMemoryLimiter(DefaultMemoryLimits, clientgoscheme.Scheme)
	const deadline = time.Minute
	for range 2 * deadline / time.Second { // decodeBurstBytes is more than decodeBytesPerSecond allows in a second
		limiter.decoded.ReserveN(time.Now(), decodeBurstBytes)
	}
	for name, tc := range map[string]struct{ fence, waits bool }{"the fence": {fence: true}, "other requests": {waits: true}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://member/apis", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := ResponseTransport{Next: answering(`{"kind":"Lease"}`), Bearer: NewTokenHolder("", clock.RealClock{}), Limiter: limiter, ForFence: tc.fence}.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(response.Body)
			if closed := response.Body.Close(); closed != nil {
				t.Fatal(closed)
			}
			if waits := err != nil; waits != tc.waits { // the limiter fails at once if the wait exceeds the deadline
				t.Errorf("error is %v", err)
			}
		})
	}
}
