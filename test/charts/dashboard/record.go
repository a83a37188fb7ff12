package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
)

// job is the managers' job label in Prometheus.
const job = "xylem"

// open opens the database in a directory, or creates one.
func open(dir string) (*tsdb.DB, error) {
	options := tsdb.DefaultOptions()
	options.NoLockfile = true
	db, err := tsdb.Open(dir, slog.New(slog.DiscardHandler), nil, options, nil)
	if err != nil {
		return nil, fmt.Errorf("open the data in %s: %w", dir, err)
	}
	return db, nil
}

// targets returns the addresses as Prometheus targets.
func targets(urls []string) (*targetgroup.Group, error) {
	group := &targetgroup.Group{Source: job}
	for _, text := range urls {
		address, err := url.Parse(text)
		if err != nil || address.Host == "" {
			return nil, fmt.Errorf("--url %q: want an address such as http://127.0.0.1:8080/metrics", text)
		}
		group.Targets = append(group.Targets, model.LabelSet{
			model.AddressLabel:     model.LabelValue(address.Host),
			model.SchemeLabel:      model.LabelValue(address.Scheme),
			model.MetricsPathLabel: model.LabelValue(address.Path),
		})
	}
	return group, nil
}

// record scrapes the metrics into the database, until the context ends or the configured time has
// passed.
func (s settings) record(ctx context.Context, db *tsdb.DB) error {
	group, err := targets(s.urls)
	if err != nil {
		return err
	}
	if s.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.length)
		defer cancel()
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	settings, err := config.Load(fmt.Sprintf("global: {scrape_interval: %s, scrape_timeout: %s}\nscrape_configs: [{job_name: %s}]\n",
		model.Duration(s.interval), model.Duration(s.interval), job), logger)
	if err != nil {
		return fmt.Errorf("configure scraping: %w", err)
	}
	manager, err := scrape.NewManager(&scrape.Options{DiscoveryReloadOnStartup: true}, logger, nil, nil, db, prometheus.NewRegistry())
	if err != nil {
		return fmt.Errorf("prepare scraping: %w", err)
	}
	if err := manager.ApplyConfig(settings); err != nil {
		return fmt.Errorf("configure scraping: %w", err)
	}
	sets := make(chan map[string][]*targetgroup.Group, 1)
	sets <- map[string][]*targetgroup.Group{job: {group}}
	running := make(chan error, 1)
	go func() { running <- manager.Run(sets) }()
	select {
	case <-ctx.Done():
	case err = <-running:
		return errors.Join(errors.New("scraping ended unexpectedly"), err)
	}
	manager.Stop()
	return <-running
}
