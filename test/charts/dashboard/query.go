package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/xylem-io/xylem/test/charts/dashboard/board"
)

const (
	// lookback is how long a series keeps its last value after the last scrape. It and the limits
	// below are Prometheus' defaults.
	lookback   = 5 * time.Minute
	maxSamples = 50_000_000
	timeout    = 2 * time.Minute
)

// data is the scraped data, queried over a time range.
type data struct {
	db       *tsdb.DB
	engine   *promql.Engine
	from, to time.Time
	step     time.Duration
}

func newData(db *tsdb.DB) (*data, error) {
	from, to := time.UnixMilli(db.Head().MinTime()).UTC(), time.UnixMilli(db.Head().MaxTime()).UTC()
	if !from.Before(to) {
		return nil, errors.New("the database is empty")
	}
	return &data{db: db, from: from, to: to, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: maxSamples, Timeout: timeout, LookbackDelta: lookback,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{}),
	})}, nil
}

// every sets the time between points. As in Grafana, the points are at multiples of this time.
func (d *data) every(step time.Duration) {
	d.step = step
	d.from = d.from.Add(step - 1).Truncate(step)
	d.to = d.to.Truncate(step)
}

// query returns the series that match a target's query.
func (d *data) query(ctx context.Context, target board.Target, expr string) ([]board.Series, error) {
	query, err := d.engine.NewRangeQuery(ctx, d.db, promql.NewPrometheusQueryOpts(false, lookback), expr, d.from, d.to, d.step)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	defer query.Close()
	matrix, err := query.Exec(ctx).Matrix()
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	var all []board.Series
	for _, one := range matrix {
		s := board.Series{Name: target.Legend(one.Metric.Map())}
		for _, point := range one.Floats {
			s.Points = append(s.Points, board.Point{At: time.UnixMilli(point.T).UTC(), Value: point.F})
		}
		if s.There() {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b board.Series) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// values returns the values of a metric's label.
func (d *data) values(ctx context.Context, metric, label string) (_ []string, err error) {
	querier, err := d.db.Querier(d.from.UnixMilli(), d.to.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("read the values of label %s of %s: %w", label, metric, err)
	}
	defer func() { err = errors.Join(err, querier.Close()) }()
	var found []string
	series := querier.Select(ctx, false, &storage.SelectHints{Func: "series", Start: d.from.UnixMilli(), End: d.to.UnixMilli()}, named(metric))
	for series.Next() {
		found = append(found, series.At().Labels().Get(label))
	}
	slices.Sort(found)
	return slices.Compact(found), series.Err()
}
