package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/xylem-io/xylem/test/charts/dashboard/board"
	"github.com/xylem-io/xylem/test/charts/dashboard/paint"
)

// width is the width of the picture in pixels.
const width = 1480

func named(metric string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, metric)
}

// draw draws the dashboard from all scraped data. It returns an error if a panel lacks data,
// but writes the picture first.
func (s settings) draw(ctx context.Context, db *tsdb.DB, out io.Writer) error {
	content, err := os.ReadFile(s.dashboard)
	if err != nil {
		return fmt.Errorf("read the dashboard: %w", err)
	}
	d, err := board.Read(content)
	if err != nil {
		return fmt.Errorf("%s: %w", s.dashboard, err)
	}
	from, err := newData(db)
	if err != nil {
		return err
	}
	length := from.to.Sub(from.from)
	from.every(board.Interval(length, s.interval, paint.Points(d, width)))
	values, err := d.Values(from.step, s.interval, length)
	if err != nil {
		return fmt.Errorf("%s: %w", s.dashboard, err)
	}
	picture := paint.Content{Board: d, Series: map[int][]board.Series{}, From: from.from, To: from.to, Step: from.step}
	if picture.Note, err = s.note(ctx, d, from); err != nil {
		return err
	}
	panels := 0
	var empty []string
	for _, panel := range d.Panels {
		series, err := ask(ctx, from, panel, values)
		if err != nil {
			return fmt.Errorf("panel %q: %w", panel.Title, err)
		}
		picture.Series[panel.ID] = series
		if panel.Type != board.Row {
			panels++
		}
		if panel.Type != board.Row && len(series) == 0 {
			nothing := panel.FieldConfig.Defaults.NoValue
			fmt.Fprintf(out, "panel %q has no data and shows %q\n", panel.Title, nothing)
			if nothing == "" {
				empty = append(empty, panel.Title)
			}
		}
	}
	drawn, lacked := paint.Picture(picture, width)
	for _, one := range lacked {
		fmt.Fprintln(out, one)
	}
	var file bytes.Buffer
	if err := paint.Write(&file, drawn); err != nil {
		return err
	}
	if err := os.WriteFile(s.out, file.Bytes(), 0o644); err != nil { //nolint:gosec // for everybody to look at
		return fmt.Errorf("write the picture: %w", err)
	}
	fmt.Fprintf(out, "%s: %d panels over %s, a point every %s, %d KiB\n", s.out, panels, length.Round(time.Second), from.step, file.Len()>>10)
	if s.rules != "" {
		if err := s.alerts(ctx, from, out); err != nil {
			return err
		}
	}
	if len(empty) > 0 {
		return fmt.Errorf("these panels have neither data nor a noValue: %q", empty)
	}
	return nil
}

// ask runs all queries of a panel and returns their series.
func ask(ctx context.Context, from *data, panel board.Panel, values board.Values) ([]board.Series, error) {
	var all []board.Series
	for _, target := range panel.Targets {
		expr, err := values.Expand(target.Expr)
		if err != nil {
			return nil, err
		}
		series, err := from.query(ctx, target, expr)
		if err != nil {
			return nil, err
		}
		all = append(all, series...)
	}
	return all, nil
}

// note returns the note next to the title: the variables' values and the time range.
func (s settings) note(ctx context.Context, d *board.Dashboard, from *data) (string, error) {
	var parts []string
	for _, v := range d.Templating.List {
		metric, label, ok := v.LabelValues()
		if !ok {
			continue
		}
		found, err := from.values(ctx, metric, label)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return "", fmt.Errorf("variable %s: metric %s lacks label %s", v.Name, metric, label)
		}
		parts = append(parts, fmt.Sprintf("%s: All (%s)", v.Label, strings.Join(found, ", ")))
	}
	parts = append(parts, fmt.Sprintf("%s to %s UTC, scraped every %s", from.from.Format("2006-01-02 15:04:05"), from.to.Format("15:04:05"), s.interval))
	return strings.Join(parts, "    "), nil
}
