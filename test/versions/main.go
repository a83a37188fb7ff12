// Command versions runs the integration stories on hosts and members with several Kubernetes
// versions, and upgrades clusters under load. It prints a table of the runs and how long they took.
// `make test-versions` builds these Kubernetes versions and runs the command.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// timeout is the maximum duration of one run.
const timeout = 90 * time.Minute

func main() {
	only := flag.String("only", "", "run only the table's rows that match this regular expression, such as 'upgrade' or '^1.36'")
	all := flag.Bool("all", false, "run all stories in each row, which takes half an hour or more for each row")
	out := flag.String("out", "dist/versions", "directory for the table and the tests' output")
	list := flag.Bool("list", false, "print the table without times, and run nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *only, *out, *all, *list)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, out string, all, list bool) error {
	filter, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	root, err := kubebin.Root()
	if err != nil {
		return err
	}
	versions, err := kubebin.Versions(root)
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // Results, readable to all.
		return fmt.Errorf("create the directory of the results: %w", err)
	}
	var rows []row
	for _, r := range matrix(versions, all) {
		if filter.MatchString(strings.Join([]string{r.host, r.members(), r.what}, " ")) {
			rows = append(rows, r)
		}
	}
	if !list {
		for i := range rows {
			rows[i].run(ctx, root, out)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	table := tableOf(rows)
	fmt.Print(table)
	if list {
		return nil
	}
	failed := make([]error, 0, len(rows))
	for _, r := range rows {
		failed = append(failed, r.failed)
	}
	return errors.Join(append(failed, os.WriteFile(filepath.Join(out, "table.md"), []byte(table), 0o600))...)
}

// run runs a row's test, and writes the output to a file.
func (r *row) run(ctx context.Context, root, out string) {
	name := strings.NewReplacer(" ", "-", ",", "", ":", "").Replace(strings.Join([]string{r.what, r.host, r.members()}, "-")) + ".log"
	log, err := os.Create(filepath.Join(out, name)) //nolint:gosec // In the directory that the caller named.
	if err != nil {
		r.failed = fmt.Errorf("write the output: %w", err)
		return
	}
	defer func() { r.failed = errors.Join(r.failed, log.Close()) }()
	fmt.Fprintf(os.Stderr, "versions: host %s, members %s: %s\n", r.host, r.members(), r.what)
	start := time.Now()
	args := append([]string{"test", "-count=1", "-v", "-timeout", timeout.String(), r.pkg}, r.args...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // Our own tests.
	cmd.Dir, cmd.Env = root, append(os.Environ(), r.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err = cmd.Run()
	r.took = time.Since(start)
	if err != nil {
		r.failed = fmt.Errorf("host %s, members %s: %s: %w: see %s", r.host, r.members(), r.what, err, log.Name())
	}
}
