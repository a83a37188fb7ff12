package mirror

import "fmt"

// Refusal is the error for an object that cannot be pushed to a member. Retries are useless until
// the root object changes.
type Refusal struct {
	// Reason is the CamelCase reason for events and conditions.
	Reason string
	// Message describes what happened and what to do.
	Message string
}

// NewRefusal returns a refusal with a formatted message.
func NewRefusal(reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }
