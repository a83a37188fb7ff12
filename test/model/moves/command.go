package moves

import (
	"context"
	"errors"
	"io"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/cli/command"
	movecommand "github.com/xylem-io/xylem/internal/cli/move"
	"github.com/xylem-io/xylem/internal/cli/move/objects"
)

// verb is a command.
type verb string

const (
	move      verb = "move"
	undo      verb = "undo"
	deleteOld verb = "delete-source"
)

// timeout is the command's --timeout. Time passes only while the command waits.
const timeout = 2 * time.Second

// execute runs a command.
func execute(ctx context.Context, v verb, h *host) error {
	streams := genericiooptions.IOStreams{In: nil, Out: io.Discard, ErrOut: io.Discard}
	c := &objects.Client{
		Cluster: &command.Cluster{Client: h, Config: &rest.Config{Host: "host"}}, Env: command.NewEnv(streams, clock.RealClock{}),
		Namespace: namespace, Timeout: timeout,
	}
	o := movecommand.Options{DryRun: command.DryRunNone, Yes: true, Image: "mover", ID: objects.NewMoveID(), Shell: shell{h}}
	h.last = time.Now()
	h.w.settle()
	var err error
	switch v {
	case move:
		o.To = places[to].Registration
		err = movecommand.Move(ctx, c, o, name)
	case undo:
		h.w.undone()
		err = movecommand.UndoMove(ctx, c, o, name)
	case deleteOld:
		h.w.deleting = true
		h.w.consent()
		err = movecommand.DestroyOldDisks(ctx, c, o, name)
	}
	h.w.deleting = false
	h.w.settle()
	h.w.check()
	return err
}

// nothingToDo reports whether a command had nothing to do.
func nothingToDo(err error) bool { return errors.As(err, &movecommand.NothingToDo{}) }
