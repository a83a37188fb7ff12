package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// scenario is a measurement and its name on the command line.
type scenario struct {
	name string
	run  func(*bench, context.Context) error
}

var scenarios = []scenario{
	{latencyName, (*bench).latency},
	{burstName, (*bench).bursts},
	{churnName, (*bench).churn}, // reuses the clusters of the last burst if they include two members
	{isolationName, (*bench).isolation},
	{scaleName, (*bench).scale},
	{foreignName, (*bench).foreign},
	{admissionName, (*bench).admission},
}

func main() {
	log.SetLogger(logr.Discard()) // disable the logs of clients
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	b := &bench{settings: s, begun: time.Now()}
	if s.quick {
		b.proxied = memberName(s.apart - 1) // so that isolation can use the same clusters
	}
	b.report = newReport(ctx, s)
	b.say("%s", b.report.headline())
	var failed error
	for _, part := range scenarios {
		if !slices.Contains(s.scenarios, part.name) || failed != nil {
			continue
		}
		b.say("== %s (load average: %s)", part.name, loadAverage())
		if err := part.run(b, ctx); err != nil {
			failed = fmt.Errorf("%s: %w", part.name, err)
		}
		// Keep the results even if a later scenario fails.
		failed = errors.Join(failed, b.report.write(s.out))
	}
	failed = errors.Join(failed, b.close(context.WithoutCancel(ctx)))
	b.say("%s", b.report.text())
	b.say("results: %s", strings.Join([]string{b.report.jsonPath(s.out), b.report.textPath(s.out)}, ", "))
	return failed
}

// bench is one run of this program.
type bench struct {
	settings
	begun  time.Time
	report *report
	now    *rig // the current clusters
	// proxied is the name of the member that the manager reaches through a proxy, if any.
	proxied string
}

// say prints progress, with the time since the start on each line.
func (b *bench) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for line := range strings.Lines(text) {
		fmt.Printf("[%6.1fs] %s\n", time.Since(b.begun).Seconds(), strings.TrimRight(line, "\n"))
	}
}

func (b *bench) close(ctx context.Context) error {
	if b.now == nil {
		return nil
	}
	err := b.now.stop(ctx)
	b.now = nil
	return err
}
