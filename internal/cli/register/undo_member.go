package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xylem-io/xylem/internal/cli/command"
)

// undoTimeout limits how long undoing may take after a failure or Ctrl-C.
const undoTimeout = time.Minute

// journal contains the writes of a run, in order.
type journal struct {
	steps []undoStep
	// updated are the existing objects that the run has changed.
	updated []string
}

// undoStep is one write of a run.
type undoStep struct {
	What string
	// Undo undoes the write, and reports whether there was anything to undo: if the response was lost,
	// the write may or may not have succeeded.
	Undo func(context.Context) (bool, error)
	// By is how the user can undo the write, usually with a command.
	By string
}

// DoAndRemember records a write and then executes it. It removes the record if the cluster rejected the
// write. After any other error, the write may have succeeded.
func (j *journal) DoAndRemember(s undoStep, write func() error) error {
	j.steps = append(j.steps, s)
	err := write()
	if command.Refused(err) {
		j.steps = j.steps[:len(j.steps)-1]
	}
	return err
}

// changedObjects records that an existing object was changed.
func (j *journal) changedObjects(what string) { j.updated = append(j.updated, what) }

// RollBackChanges undoes all writes, the last one first, and reports what is left. It stops at the
// first failure, because later objects depend on earlier ones.
func (j *journal) RollBackChanges(ctx context.Context, cause error) error {
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
		lines = append(append(lines, "Some changes were not undone. Undo them manually, in this order:"), left...)
	}
	if len(j.updated) > 0 {
		lines = append(lines, "Changed and not restored: "+strings.Join(j.updated, ", "))
	}
	if len(lines) == 0 {
		lines = []string{"Nothing was changed"}
	}
	return fmt.Errorf("%w\n%s", cause, strings.Join(lines, "\n"))
}

// errLed explains why Rollback does not delete a namespace that the run created.
var errLed = errors.New("the namespace now contains the Lease of the manager's fence")

// errChangedMeanwhile explains why Rollback does not undo a change.
var errChangedMeanwhile = errors.New("somebody else has changed the object in the meantime")
