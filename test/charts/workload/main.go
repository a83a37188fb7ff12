package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// Names of the members. All incidents except the namespace rules affect the second one.
const (
	steady   = "cluster38"
	troubled = "cluster39"
)

// managerArgs are like the arguments in config/manager, but with shorter intervals, so that the
// dashboard shows in a few minutes what otherwise takes ten.
var managerArgs = []string{"--leader-elect", "--orphan-interval=30s", "--stuck-after=20s"}

const (
	// finish is how long the other command may take to finish after the interrupt.
	finish = 5 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "workload:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command []string) (err error) {
	if len(command) == 0 || command[0] == "-h" || command[0] == "--help" {
		fmt.Fprintln(os.Stderr, "go run ./test/charts/workload COMMAND [ARGUMENT...]")
		return flag.ErrHelp
	}
	begun := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("[%6.1fs] %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}
	x, err := harness.Start(ctx, harness.Options{
		Members: controlplane.Members(steady, troubled), Snapshots: true, ManagerArgs: managerArgs,
		FenceDuration: harness.ShippedFence, ProbeInterval: harness.ShippedProbe,
		Progress: say,
	})
	if err != nil {
		return err
	}
	w := &workload{x: x, say: say}
	defer func() { err = errors.Join(err, w.stop(context.WithoutCancel(ctx))) }()
	if w.second, err = x.AnotherManager(ctx, "second", x.Fleet.Host); err != nil {
		return err
	}
	if err := w.second.Start(ctx); err != nil {
		return err
	}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	watcher, err := w.watcher(command)
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	living, enough := context.WithCancel(groupCtx)
	group.Go(func() error { return w.live(living) })
	group.Go(func() error {
		defer enough()
		return w.tell(groupCtx)
	})
	failed := group.Wait()
	enough()
	return errors.Join(failed, end(watcher))
}

// watcher starts the other command with the addresses of the managers' metrics.
func (w *workload) watcher(command []string) (*exec.Cmd, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the caller's; ended by end
	for _, m := range []*harness.Manager{w.x.Manager, w.second} {
		cmd.Args = append(cmd.Args, "--url="+m.MetricsURL())
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	return cmd, nil
}

// end interrupts a command and waits for it.
func end(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("interrupt %s: %w", cmd.Path, err)
	}
	timer := time.AfterFunc(finish, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", cmd.Path, err)
	}
	return nil
}

// workload is one run.
type workload struct {
	x      *harness.Xylem
	second *harness.Manager // in addition to the harness's own manager
	say    func(format string, args ...any)
}

func (w *workload) stop(ctx context.Context) error {
	var err error
	if w.second != nil {
		err = w.second.Kill()
	}
	return errors.Join(err, w.x.Stop(ctx))
}
