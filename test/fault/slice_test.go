package main

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/xylem-io/xylem/test/fault/engine"
	"github.com/xylem-io/xylem/test/fault/scenario"
)

const (
	// sliceRigs is the number of rigs. It leaves resources for the other tests on the machine.
	sliceRigs = 2
	// sliceTime is the timeout of the slice.
	sliceTime = 30 * time.Minute
)

// TestSlice runs the same short selection of faults every time.
func TestSlice(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), sliceTime)
	defer cancel()
	e, err := engine.New(ctx, engine.Options{Rigs: sliceRigs, Seed: 1, Downtime: downtime, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	core := slices.DeleteFunc(scenario.All(), func(s scenario.Scenario) bool { return !s.Core })
	report := engine.NewReport(filepath.Join(os.TempDir(), "xylem-fault"), t.Logf)
	specs := e.WithReferences(ctx, core, func() iter.Seq[engine.Spec] { return slices.Values(e.Slice(core)) })
	if err := e.Specs(ctx, specs, report.Add); err != nil {
		t.Error(err)
	}
	t.Log(report)
	if report.Total.Violations > 0 || report.Total.Errors > 0 || report.Total.Faults == 0 || ctx.Err() != nil {
		t.Errorf("%s (%v)", &report.Total, ctx.Err())
	}
}
