// Command kubectl-xylem is Xylem's kubectl plugin: kubectl xylem.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/cli"
	"github.com/xylem-io/xylem/internal/cli/command"
)

// completionProgram is the name of the program that kubectl runs to complete this plugin's arguments. A
// symlink to the plugin with that name is sufficient.
const completionProgram = "kubectl_complete-xylem"

func main() {
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == completionProgram {
		args = append([]string{"__complete"}, args...)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	env := command.NewEnv(streams, clock.RealClock{})
	setKlogOutput(env.ErrOut)
	code := cli.Run(ctx, env, args)
	stop()
	os.Exit(code)
}

// setKlogOutput makes client-go write its logs to a stream, each line once.
func setKlogOutput(w io.Writer) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL", "one_output": "true"} {
		if err := flags.Set(name, value); err != nil {
			panic(err) // klog defines these flags
		}
	}
	klog.SetOutput(w)
}
