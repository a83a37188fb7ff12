package member

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
)

const (
	// answerLimit in bytes of an answer to a call: an object has a few MiB at
	// most (etcd's limit), lists that are called for are short, and discovery of
	// a cluster with a thousand kinds takes less than a tenth of it.
	answerLimit = 32 << 20
	// listLimit in bytes of a list that fills a cache, if it is not streamed as a
	// watch: 200,000 volumes.
	listLimit = 1 << 30
	// complaintLimit in bytes of an answer that says why not.
	complaintLimit = 64 << 10
	// headerLimit in bytes of an answer's header.
	headerLimit = 256 << 10
	// messageLimit in bytes of what is told of a member: conditions take 32 KiB.
	messageLimit = 2 << 10
)

// errTooLong ends the reading of an answer.
var errTooLong = errors.New("the member answers with more than any API server would")

// answers sends requests with the token, bounds what a member may answer, and takes
// the token out of its complaints: an error ends up in conditions, events and logs, and a server, or
// something between it and us, may well repeat what it was sent.
type answers struct {
	next   http.RoundTripper
	bearer *bearer
	limit  int64
}

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
	token := a.bearer.current()
	response, err := a.next.RoundTrip(sign(request, token))
	if err != nil || response.Body == nil {
		return response, err
	}
	a.bearer.note(response)
	if response.StatusCode/100 != 2 {
		return complaint(response, token)
	}
	// The events of a watch have a limit of their own each (k8s.io/apimachinery,
	// runtime/serializer/streaming).
	if request.URL.Query().Get("watch") == "" {
		response.Body = &short{ReadCloser: response.Body, left: a.limit}
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find what is below.
func (a answers) WrappedRoundTripper() http.RoundTripper { return a.next }

func complaint(response *http.Response, token string) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, complaintLimit))
	if closed := response.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("read the member's answer: %w", err)
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

// short is a body that may not be long.
type short struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (s *short) Read(p []byte) (int, error) {
	if s.left < 0 {
		return 0, errTooLong
	}
	n, err := s.ReadCloser.Read(p)
	if s.left -= int64(n); s.left < 0 {
		return 0, errTooLong
	}
	return n, err
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
