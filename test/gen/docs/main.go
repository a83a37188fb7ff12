package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	verify := flag.Bool("verify", false, "Write nothing; print the pages that are out of date, and fail.")
	flag.Parse()
	if err := run(*verify); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run(verify bool) error {
	if err := strays("internal"); err != nil {
		return err
	}
	var wrong []error
	for path, page := range map[string]func() ([]byte, error){"internal/REASONS.md": reasonsPage, "internal/METRICS.md": metricsPage, "internal/VOLUMES.md": volumesPage,
		"internal/SNAPSHOTS.md": snapshotsPage, howTos: howTosPage, "internal/cli/inspect/zz_generated.reasons.go": reasonsTable} {
		want, err := page()
		if err != nil {
			return fmt.Errorf("generate %s: %w", path, err)
		}
		if !verify {
			wrong = append(wrong, os.WriteFile(path, want, 0o644)) //nolint:gosec // a page of the repository
			continue
		}
		if has, err := os.ReadFile(path); err != nil || !bytes.Equal(has, want) { //nolint:gosec // named above
			wrong = append(wrong, fmt.Errorf("%s is out of date: run make generate", path))
		}
	}
	return errors.Join(wrong...)
}
