package budget

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/weigh"
)

const (
	// MaxResponseBytes is the maximum size, in bytes, of a response that is not a watch. An object takes at
	// most a few MiB (etcd's limit), lists are paginated, and discovery of a cluster with a thousand
	// kinds takes less than a tenth of this limit.
	MaxResponseBytes = 32 << 20
	// MaxErrorResponseBytes is the maximum size of an error response, in bytes. maxErrorResponseWeight is its
	// maximum size in memory once decoded.
	MaxErrorResponseBytes, maxErrorResponseWeight = 64 << 10, 4 << 20
	// MaxHeaderBytes is the maximum size, in bytes, of a response header.
	MaxHeaderBytes = 256 << 10
)

// Xylem requests these encodings, and can weigh only responses that use them.
const (
	ProtobufType = runtime.ContentTypeProtobuf
	JSONType     = runtime.ContentTypeJSON
)

// ResponseTransport adds the token to requests, limits the size of responses, and removes the token from
// error responses. Errors are shown in conditions, events and logs, and a server or proxy may echo
// the request in an error.
type ResponseTransport struct {
	Next    http.RoundTripper
	Bearer  *TokenHolder
	Limiter *MemoryLimiter
	// ForFence means that these are the requests of the fence. Their responses have their own rate limit.
	ForFence bool
}

// RoundTrip implements http.RoundTripper.
func (a ResponseTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	token := a.Bearer.CurrentToken()
	response, err := a.Next.RoundTrip(withBearerToken(request, token))
	if err != nil || response.Body == nil {
		return response, err
	}
	a.Bearer.recordMemberTime(response)
	// The transport decompresses responses, so this measures the decompressed size.
	body := &countedBody{ReadCloser: response.Body, limiter: a.Limiter, decoded: a.Limiter.decoded, what: request.Method + " " + request.URL.Path}
	if a.ForFence {
		body.decoded = a.Limiter.fenced
	}
	encoding := responseEncoding(response)
	if response.StatusCode/100 != 2 {
		return a.readErrorResponse(response, body, encoding, token)
	}
	watch, ctx := request.URL.Query().Get("watch") != "", request.Context()
	divides, _ := ctx.Value(divisibleKey{}).(bool)
	switch {
	case encoding == ProtobufType && watch:
		response.Body = &frameBody{countedBody: body, ctx: ctx}
	case encoding == ProtobufType:
		response.Body = &wholeBody{countedBody: body, ctx: ctx, divisible: divides}
	case encoding == JSONType && watch:
		response.Body = &documentBody{countedBody: body, ctx: ctx, json: weigh.NewJSONWeigher(a.Limiter.shapes)}
	case encoding == JSONType:
		response.Body = &wholeBody{countedBody: body, ctx: ctx, divisible: divides, json: weigh.NewJSONWeigher(a.Limiter.shapes)}
	default:
		failed := a.Limiter.rejectMalformed(body.what, fmt.Errorf("the content type is %q", response.Header.Get("Content-Type")))
		return nil, errors.Join(failed, body.Close())
	}
	return response, nil
}

// responseEncoding returns the encoding that client-go selects for a response, from its media type.
// It returns "" for an encoding that was not requested.
func responseEncoding(response *http.Response) string {
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || media != ProtobufType && media != JSONType {
		return ""
	}
	return media
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (a ResponseTransport) WrappedRoundTripper() http.RoundTripper { return a.Next }

func (a ResponseTransport) readErrorResponse(response *http.Response, from *countedBody, encoding, token string) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(from, MaxErrorResponseBytes))
	if closed := from.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("read the member's response: %w", err)
	}
	if encoding == "" || !a.fitsErrorWeight(body, encoding) {
		response.Header.Set("Content-Type", "text/plain") // client-go shows this type as text and does not decode it
	}
	if token != "" {
		for _, form := range []string{token, base64.StdEncoding.EncodeToString([]byte(token))} {
			// Keep the length, because the response may be in a binary encoding.
			body = bytes.ReplaceAll(body, []byte(form), bytes.Repeat([]byte("*"), len(form)))
		}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return response, nil
}

// fitsErrorWeight reports whether an error response stays below maxErrorResponseWeight once decoded.
func (a ResponseTransport) fitsErrorWeight(body []byte, encoding string) bool {
	if encoding == ProtobufType {
		_, err := weigh.WeighProtobuf(a.Limiter.newObject, body, maxErrorResponseWeight)
		return err == nil
	}
	json := weigh.NewJSONWeigher(a.Limiter.shapes)
	_, _, err := json.WeighBytes(body)
	weight, _ := json.WeightAndLength()
	return err == nil && weight <= maxErrorResponseWeight
}

// TokenHolder holds the token of a connection, which may be replaced while the connection is in use,
// and the difference between the member's clock and the manager's.
type TokenHolder struct {
	Clock       clock.PassiveClock
	token       atomic.Pointer[string]
	memberAhead atomic.Int64
}

// NewTokenHolder creates a Bearer with a token.
func NewTokenHolder(token string, c clock.PassiveClock) *TokenHolder {
	b := &TokenHolder{Clock: c}
	b.token.Store(&token)
	return b
}

// CurrentToken returns the current token.
func (b *TokenHolder) CurrentToken() string { return *b.token.Load() }

// ReplaceToken replaces the token for all later requests.
func (b *TokenHolder) ReplaceToken(token string) { b.token.Store(&token) }

// SignRequest adds the current token to a request.
func (b *TokenHolder) SignRequest(request *http.Request) *http.Request {
	return withBearerToken(request, b.CurrentToken())
}

// withBearerToken adds the token to a request.
func withBearerToken(request *http.Request, token string) *http.Request {
	if token == "" {
		return request
	}
	request = request.Clone(request.Context()) // a RoundTripper must not modify its request
	request.Header.Set("Authorization", "Bearer "+token)
	return request
}

// recordMemberTime records the member's time from the Date header of a response.
func (b *TokenHolder) recordMemberTime(answer *http.Response) {
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		b.memberAhead.Store(int64(date.Sub(b.Clock.Now())))
	}
}

// Now returns the time by the member's clock, as of its last response. The member's tokens
// expire by that clock.
func (b *TokenHolder) Now() time.Time { return b.Clock.Now().Add(time.Duration(b.memberAhead.Load())) }
