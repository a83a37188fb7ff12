package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// undoTimeout bounds what is undone after a failure, or after Ctrl-C.
const undoTimeout = time.Minute

// journal is what a run has made, in order.
type journal []step

type step struct {
	what string
	undo func(context.Context) error
	// by is what somebody types who has to undo it himself.
	by string
}

func (j *journal) did(what, by string, undo func(context.Context) error) {
	*j = append(*j, step{what: what, by: by, undo: undo})
}

// rollback undoes all of it, the latest first, and says what is left.
func (j *journal) rollback(ctx context.Context, cause error) error {
	if len(*j) == 0 {
		return fmt.Errorf("%w\nNothing was changed", cause)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	var undone, left []string
	for _, s := range slices.Backward(*j) {
		if err := s.undo(ctx); err != nil {
			left = append(left, fmt.Sprintf("  %s (%v): %s", s.what, err, s.by))
			continue
		}
		undone = append(undone, s.what)
	}
	message := "Undone: " + strings.Join(undone, ", ")
	if len(undone) == 0 {
		message = "Nothing was undone"
	}
	if len(left) > 0 {
		message += "\nLeft, to be undone by hand:\n" + strings.Join(left, "\n")
	}
	return fmt.Errorf("%w\n%s", cause, message)
}

// errKept is why something that a run made is not taken back.
var errKept = errors.New("it holds the record of the manager's leadership by now")
