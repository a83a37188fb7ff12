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
	// AnswerLimit is the maximum size, in bytes, of a response that is not a watch. An object takes at
	// most a few MiB (etcd's limit), lists are paginated, and discovery of a cluster with a thousand
	// kinds takes less than a tenth of this limit.
	AnswerLimit = 32 << 20
	// ComplaintLimit is the maximum size of an error response, in bytes. complaintWeight is its
	// maximum size in memory once decoded.
	ComplaintLimit, complaintWeight = 64 << 10, 4 << 20
	// HeaderLimit is the maximum size, in bytes, of a response header.
	HeaderLimit = 256 << 10
)

// Xylem requests these encodings, and can weigh only responses that use them.
const (
	ProtobufType = runtime.ContentTypeProtobuf
	JSONType     = runtime.ContentTypeJSON
)

// Answers adds the token to requests, limits the size of responses, and removes the token from
// error responses. Errors are shown in conditions, events and logs, and a server or proxy may echo
// the request in an error.
type Answers struct {
	Next    http.RoundTripper
	Bearer  *Bearer
	Limiter *Limiter
	// Fence means that these are the requests of the fence. Their responses have their own rate limit.
	Fence bool
}

// RoundTrip implements http.RoundTripper.
func (a Answers) RoundTrip(request *http.Request) (*http.Response, error) {
	token := a.Bearer.Current()
	response, err := a.Next.RoundTrip(sign(request, token))
	if err != nil || response.Body == nil {
		return response, err
	}
	a.Bearer.note(response)
	// The transport decompresses responses, so this measures the decompressed size.
	body := &reading{ReadCloser: response.Body, limiter: a.Limiter, decoded: a.Limiter.decoded, what: request.Method + " " + request.URL.Path}
	if a.Fence {
		body.decoded = a.Limiter.fenced
	}
	encoding := encodingOf(response)
	if response.StatusCode/100 != 2 {
		return a.complaint(response, body, encoding, token)
	}
	watch, ctx := request.URL.Query().Get("watch") != "", request.Context()
	divides, _ := ctx.Value(divisible{}).(bool)
	switch {
	case encoding == ProtobufType && watch:
		response.Body = &frames{reading: body, ctx: ctx}
	case encoding == ProtobufType:
		response.Body = &whole{reading: body, ctx: ctx, divisible: divides}
	case encoding == JSONType && watch:
		response.Body = &documents{reading: body, ctx: ctx, json: weigh.NewJSON(a.Limiter.shapes)}
	case encoding == JSONType:
		response.Body = &whole{reading: body, ctx: ctx, divisible: divides, json: weigh.NewJSON(a.Limiter.shapes)}
	default:
		failed := a.Limiter.malformed(body.what, fmt.Errorf("the content type is %q", response.Header.Get("Content-Type")))
		return nil, errors.Join(failed, body.Close())
	}
	return response, nil
}

// encodingOf returns the encoding that client-go selects for a response, from its media type.
// It returns "" for an encoding that was not requested.
func encodingOf(response *http.Response) string {
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || media != ProtobufType && media != JSONType {
		return ""
	}
	return media
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (a Answers) WrappedRoundTripper() http.RoundTripper { return a.Next }

func (a Answers) complaint(response *http.Response, from *reading, encoding, token string) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(from, ComplaintLimit))
	if closed := from.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("read the member's response: %w", err)
	}
	if encoding == "" || !a.decodable(body, encoding) {
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

// decodable reports whether an error response stays below complaintWeight once decoded.
func (a Answers) decodable(body []byte, encoding string) bool {
	if encoding == ProtobufType {
		_, err := weigh.Protobuf(a.Limiter.object, body, complaintWeight)
		return err == nil
	}
	json := weigh.NewJSON(a.Limiter.shapes)
	_, _, err := json.Weigh(body)
	weight, _ := json.Weight()
	return err == nil && weight <= complaintWeight
}

// Bearer holds the token of a connection, which may be replaced while the connection is in use,
// and the difference between the member's clock and the manager's.
type Bearer struct {
	Clock clock.PassiveClock
	token atomic.Pointer[string]
	ahead atomic.Int64
}

// NewBearer creates a Bearer with a token.
func NewBearer(token string, c clock.PassiveClock) *Bearer {
	b := &Bearer{Clock: c}
	b.token.Store(&token)
	return b
}

// Current returns the current token.
func (b *Bearer) Current() string { return *b.token.Load() }

// Replace replaces the token for all later requests.
func (b *Bearer) Replace(token string) { b.token.Store(&token) }

// Sign adds the current token to a request.
func (b *Bearer) Sign(request *http.Request) *http.Request { return sign(request, b.Current()) }

// sign adds the token to a request.
func sign(request *http.Request, token string) *http.Request {
	if token == "" {
		return request
	}
	request = request.Clone(request.Context()) // a RoundTripper must not modify its request
	request.Header.Set("Authorization", "Bearer "+token)
	return request
}

// note records the member's time from the Date header of a response.
func (b *Bearer) note(answer *http.Response) {
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		b.ahead.Store(int64(date.Sub(b.Clock.Now())))
	}
}

// Now returns the time by the member's clock, as of its last response. The member's tokens
// expire by that clock.
func (b *Bearer) Now() time.Time { return b.Clock.Now().Add(time.Duration(b.ahead.Load())) }
