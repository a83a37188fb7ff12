package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/xylem-io/xylem/test/charts/dashboard/board"
)

// alerts prints how long each alert's expression was true.
func (s settings) alerts(ctx context.Context, from *data, out io.Writer) error {
	content, err := os.ReadFile(s.rules)
	if err != nil {
		return fmt.Errorf("read the alert rules: %w", err)
	}
	groups, wrong := rulefmt.Parse(content, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(wrong) > 0 {
		return fmt.Errorf("read the alert rules in %s: %w", s.rules, errors.Join(wrong...))
	}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			series, err := from.query(ctx, board.Target{LegendFormat: "{{cluster}}"}, rule.Expr)
			if err != nil {
				return fmt.Errorf("alert %s: %w", rule.Alert, err)
			}
			held := time.Duration(0)
			for _, one := range series {
				held = max(held, time.Duration(len(one.Points))*from.step)
			}
			fmt.Fprintf(out, "alert %s: its expression held for a total of %s; it must hold for %s\n", rule.Alert, held, time.Duration(rule.For))
		}
	}
	return nil
}
