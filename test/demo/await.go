package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// look is the interval for checking a condition.
	look = 50 * time.Millisecond
	// patience is how long a wait prints nothing. After that, a terminal shows a status line. On any
	// other output, the wait prints a line every patienceLine.
	patience     = 2 * time.Second
	patienceLine = 10 * time.Second
	// stepLimit is the maximum duration of a step that takes a second or two on an idle machine.
	stepLimit = 2 * time.Minute
)

// unmet is an error for an expectation that was not met.
type unmet struct{ expected, is string }

func (u *unmet) Error() string { return fmt.Sprintf("expected: %s\nbut: %s", u.expected, u.is) }

// await polls lacking, which returns what is still missing, until it returns "". After patience,
// await prints progress. After stepLimit, it returns an unmet error. If the context ends, it
// returns the context's cause.
func (d *demo) await(ctx context.Context, expected string, lacking func(context.Context) (string, error)) error {
	defer d.out.say("")
	begin := time.Now()
	said, last := begin, ""
	err := wait.PollUntilContextTimeout(ctx, look, stepLimit, true, func(ctx context.Context) (bool, error) {
		var err error
		if last, err = lacking(ctx); err != nil || last == "" {
			return err == nil, err
		}
		waited, pause := time.Since(begin), patienceLine
		if d.out.terminal || said.Equal(begin) {
			pause = patience
		}
		if waited >= patience && time.Since(said) >= pause {
			said = time.Now()
			d.out.say(fmt.Sprintf("%s: %s (%d s)", expected, last, int(waited.Seconds())))
		}
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded) && last != "":
		return &unmet{expected, fmt.Sprintf("%s, after %s", last, stepLimit)}
	default:
		return fmt.Errorf("wait for %s: %w", expected, err)
	}
}

// busy calls f and shows what it is doing until f returns.
func (d *demo) busy(what string, f func() error) error {
	defer d.out.say("")
	begin := time.Now()
	done := make(chan error, 1)
	go func() { done <- f() }()
	ticker := time.NewTicker(patience)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			if d.out.terminal || n == 1 || n%int(patienceLine/patience) == 0 {
				d.out.say(fmt.Sprintf("%s (%d s)", what, int(time.Since(begin).Seconds())))
			}
		}
	}
}
