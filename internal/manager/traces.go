package manager

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/xylem-io/xylem/internal/controller/claimtrace"
	"github.com/xylem-io/xylem/internal/tracing"
)

// traces creates the exporter for traces, if an endpoint is set.
func (w *wiring) traces(ctx context.Context) error {
	if w.options.Tracing.Endpoint == "" {
		return nil
	}
	tracer, err := tracing.New(ctx, w.options.Tracing, w.host.id, ctrl.Log.WithName("tracing"))
	if err != nil {
		return err
	}
	if err := w.mgr.Add(ctrlmanager.RunnableFunc(tracer.Run)); err != nil {
		return fmt.Errorf("add the trace exporter: %w", err)
	}
	w.exports = claimtrace.NewExports(tracer, w.clock)
	return nil
}
