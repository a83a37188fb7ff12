package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	err := run(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

// settings are the values of the flags.
type settings struct {
	urls      []string
	length    time.Duration
	interval  time.Duration
	data      string
	dashboard string
	rules     string
	out       string
}

func run(args []string) (err error) {
	var s settings
	flags := flag.NewFlagSet("dashboard", flag.ContinueOnError)
	flags.Func("url", "Address of a manager's metrics. Can be repeated. If not set, the command draws the data in --data.", func(text string) error {
		s.urls = append(s.urls, text)
		return nil
	})
	flags.DurationVar(&s.length, "for", 0, "How long to scrape metrics. 0 means until the program is interrupted.")
	flags.DurationVar(&s.interval, "interval", 5*time.Second, "Scrape interval.")
	flags.StringVar(&s.data, "data", "", "Directory for the scraped data. If empty, a temporary directory is used.")
	flags.StringVar(&s.dashboard, "dashboard", "charts/xylem/files/dashboard.json", "File with the dashboard.")
	flags.StringVar(&s.rules, "rules", "charts/xylem/files/rules.yaml", "File with the alert rules. If empty, the command does not check alerts.")
	flags.StringVar(&s.out, "out", "dashboard.png", "File for the picture.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.data == "" {
		if s.data, err = os.MkdirTemp("", "dashboard-"); err != nil {
			return fmt.Errorf("create a directory for the data: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.data)) }()
	}
	db, err := open(s.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if len(s.urls) > 0 {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := s.record(ctx, db); err != nil {
			return err
		}
		stop()
	}
	return s.draw(context.Background(), db, os.Stdout)
}
