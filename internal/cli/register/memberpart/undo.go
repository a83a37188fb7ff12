package memberpart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xylem-io/xylem/internal/cli/command"
)

// undoTimeout bounds what is undone after a failure, or after Ctrl-C.
const undoTimeout = time.Minute

// journal is what a run has set out to make, in order.
type journal struct {
	steps []Step
	// updated are the objects that were there before, and that the run has changed.
	updated []string
}

// Step is one write of a run.
type Step struct {
	What string
	// Undo takes it back, and reports whether there was anything to withdraw: a
	// write whose answer was lost may have been done or not.
	Undo func(context.Context) (bool, error)
	// By is what somebody types who has to undo it himself.
	By string
}

// Do notes a write before it is done, and does it. What the cluster has refused is
// struck out; of any other error nobody knows whether it was done.
func (j *journal) Do(s Step, write func() error) error {
	j.steps = append(j.steps, s)
	err := write()
	if command.Refused(err) {
		j.steps = j.steps[:len(j.steps)-1]
	}
	return err
}

// changed notes that an object that was there before is another now.
func (j *journal) changed(what string) { j.updated = append(j.updated, what) }

// Rollback undoes all of it, the latest first, and says what is left. It ends at the
// first step that fails: what was created earlier is what the later needs.
func (j *journal) Rollback(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	var undone, left, lines []string
	for _, s := range slices.Backward(j.steps) {
		if len(left) > 0 {
			left = append(left, fmt.Sprintf("  %s: %s", s.What, s.By))
			continue
		}
		did, err := s.Undo(ctx)
		switch {
		case err != nil:
			left = append(left, fmt.Sprintf("  %s (%v): %s", s.What, err, s.By))
		case did:
			undone = append(undone, s.What)
		}
	}
	if len(undone) > 0 {
		lines = append(lines, "Undone: "+strings.Join(undone, ", "))
	}
	if len(left) > 0 {
		lines = append(append(lines, "Left, to be undone by hand, in this order:"), left...)
	}
	if len(j.updated) > 0 {
		lines = append(lines, "Brought up to date, and left so: "+strings.Join(j.updated, ", "))
	}
	if len(lines) == 0 {
		lines = []string{"Nothing was changed"}
	}
	return fmt.Errorf("%w\n%s", cause, strings.Join(lines, "\n"))
}

// errLed is why a namespace that a run created is not deleted.
var errLed = errors.New("it now contains the Lease of the manager's fence")

// ErrMeanwhile is why something that a run created or changed is not withdrawn.
var ErrMeanwhile = errors.New("somebody else has changed it since")
