// Package failure builds the error responses to requests that do not get a stream: an HTTP status
// and one line, in the format that the host's API server forwards and kubectl prints.
package failure
