package member

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xylem-io/xylem/internal/weigh"
)

const (
	// answerLimit in bytes of an answer that is no watch: an object has a few MiB
	// at most (etcd's limit), lists have pages, and discovery of a cluster with a
	// thousand kinds takes less than a tenth of it.
	answerLimit = 32 << 20
	// complaintLimit in bytes of an answer that says why not; complaintWeight in
	// bytes of memory of it, decoded.
	complaintLimit, complaintWeight = 64 << 10, 4 << 20
	// headerLimit in bytes of an answer's header.
	headerLimit = 256 << 10
	// messageLimit in bytes of what is told of a member: conditions take 32 KiB.
	messageLimit = 2 << 10
)

// The encodings of answers that are asked for, and that can be weighed.
const (
	protobufType = runtime.ContentTypeProtobuf
	jsonType     = runtime.ContentTypeJSON
)

// answers sends requests with the token, bounds what a member may answer, and takes
// the token out of its complaints: an error ends up in conditions, events and logs, and a server, or
// something between it and us, may well repeat what it was sent.
type answers struct {
	next    http.RoundTripper
	bearer  *bearer
	limiter *limiter
}

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
	token := a.bearer.current()
	response, err := a.next.RoundTrip(sign(request, token))
	if err != nil || response.Body == nil {
		return response, err
	}
	a.bearer.note(response)
	// The transport has unpacked compressed answers: what is weighed is what is read.
	body := &reading{ReadCloser: response.Body, limiter: a.limiter, what: request.Method + " " + request.URL.Path}
	encoding := encodingOf(response)
	if response.StatusCode/100 != 2 {
		return a.complaint(response, body, encoding, token)
	}
	watch, ctx := request.URL.Query().Get("watch") != "", request.Context()
	switch {
	case encoding == protobufType && watch:
		response.Body = &frames{reading: body, ctx: ctx}
	case encoding == protobufType:
		response.Body = &whole{reading: body, ctx: ctx}
	case encoding == jsonType && watch:
		response.Body = &documents{reading: body, ctx: ctx}
	case encoding == jsonType:
		response.Body = &whole{reading: body, ctx: ctx, json: &weigh.JSON{}}
	default:
		failed := a.limiter.malformed(body.what, fmt.Errorf("its content type is %q", response.Header.Get("Content-Type")))
		return nil, errors.Join(failed, body.Close())
	}
	return response, nil
}

// encodingOf an answer, by the media type that client-go decodes it by; empty if
// it is none that was asked for.
func encodingOf(response *http.Response) string {
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || media != protobufType && media != jsonType {
		return ""
	}
	return media
}

// WrappedRoundTripper lets client-go find what is below.
func (a answers) WrappedRoundTripper() http.RoundTripper { return a.next }

func (a answers) complaint(response *http.Response, from *reading, encoding, token string) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(from, complaintLimit))
	if closed := from.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("read the member's answer: %w", err)
	}
	if encoding == "" || !a.decodable(body, encoding) {
		response.Header.Set("Content-Type", "text/plain") // shown, and not decoded
	}
	if token != "" {
		for _, form := range []string{token, base64.StdEncoding.EncodeToString([]byte(token))} {
			// Of the same length, as the answer may be in a binary form.
			body = bytes.ReplaceAll(body, []byte(form), bytes.Repeat([]byte("*"), len(form)))
		}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return response, nil
}

// decodable reports whether a complaint is as small as one is, once decoded.
func (a answers) decodable(body []byte, encoding string) bool {
	if encoding == protobufType {
		_, err := weigh.Protobuf(a.limiter.object, body, complaintWeight)
		return err == nil
	}
	var json weigh.JSON
	_, _, err := json.Weigh(body)
	weight, _ := json.Weight()
	return err == nil && weight <= complaintWeight
}

// versions are what Kubernetes and its distributions call themselves.
var versions = regexp.MustCompile(`^v?[0-9]+\.[0-9]+[0-9A-Za-z.+_-]{0,56}$`)

// unknownVersion stands for what a member says that is no version: it would be
// shown in the registration, and on the virtual node.
const unknownVersion = "unknown"

func versionOf(said string) string {
	if versions.MatchString(said) {
		return said
	}
	return unknownVersion
}
