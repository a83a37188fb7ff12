package mirror

// Refusal is the error for something that cannot be pushed to a member as it
// stands: trying again is useless until the root object is another.
type Refusal struct {
	// Reason is CamelCase, for events and conditions.
	Reason string
	// Message reports what it is about and what to do.
	Message string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }
