// Package failure is what a request is answered that gets no stream: an HTTP status and one
// line, in the form that the host's API server passes on and kubectl prints.
package failure
