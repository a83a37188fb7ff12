// Command kubectl-xylem is kubectl's plugin of Xylem: kubectl xylem.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/cli"
	"github.com/xylem-io/xylem/internal/cli/command"
)

// completer is the name by which kubectl calls for the completion of this plugin's
// arguments: a link of that name, beside the plugin, is enough.
const completer = "kubectl_complete-xylem"

func main() {
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == completer {
		args = append([]string{"__complete"}, args...)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	code := cli.Run(ctx, command.NewEnv(streams, clock.RealClock{}), args)
	stop()
	os.Exit(code)
}
