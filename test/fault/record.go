package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xylem-io/xylem/test/fault/engine"
)

// entry records the result of one command.
type entry struct {
	Date       string `json:"date"`
	Commit     string `json:"commit"`
	Command    string `json:"command"`
	Seed       uint64 `json:"seed"`
	Runs       int    `json:"runs"`
	Faults     int    `json:"faults"`
	Missed     int    `json:"notReached"`
	Violations int    `json:"violations"`
	Errors     int    `json:"errors"`
	Minutes    int    `json:"minutes"`
}

// These lines enclose the running total in the README next to the file.
const (
	readme     = "README.md"
	totalBegin = "<!-- running total -->\n"
	totalEnd   = "<!-- end of the running total -->\n"
)

// record appends a command's result to a file, and to the README next to it.
func record(path, command, built string, seed uint64, report *engine.Report) error {
	var entries []entry
	content, err := os.ReadFile(path) //nolint:gosec // named by the caller
	if err == nil {
		err = json.Unmarshal(content, &entries)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the running total: %w", err)
	}
	t := report.Total
	entries = append(entries, entry{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: built, Command: command, Seed: seed,
		Runs: t.Runs, Faults: t.Faults, Missed: t.Missed, Violations: t.Violations, Errors: t.Errors,
		Minutes: int(report.Elapsed().Minutes()),
	})
	if content, err = json.MarshalIndent(entries, "", "  "); err != nil {
		return fmt.Errorf("write the running total: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil { //nolint:gosec // to be read by all
		return fmt.Errorf("write the running total: %w", err)
	}
	page := filepath.Join(filepath.Dir(path), readme)
	text, err := os.ReadFile(page) //nolint:gosec // beside the caller's file
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the page with the running total: %w", err)
	}
	if err := os.WriteFile(page, []byte(withTotal(string(text), entries)), 0o644); err != nil { //nolint:gosec // to be read by all
		return fmt.Errorf("write the page with the running total: %w", err)
	}
	return nil
}

// withTotal replaces the running total in a page that has the markers for it.
func withTotal(page string, entries []entry) string {
	before, rest, found := strings.Cut(page, totalBegin)
	_, after, closed := strings.Cut(rest, totalEnd)
	if !found || !closed {
		return page
	}
	var out strings.Builder
	out.WriteString("| | runs | faults | not reached | violations | could not run | minutes |\n|---|---|---|---|---|---|---|\n")
	commands := map[string]*entry{}
	var sum entry
	for _, e := range entries {
		if commands[e.Command] == nil {
			commands[e.Command] = &entry{}
		}
		commands[e.Command].add(e)
		sum.add(e)
	}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		fmt.Fprintf(&out, "| %s %s", name, commands[name])
	}
	fmt.Fprintf(&out, "| **all** %s", &sum)
	return before + totalBegin + out.String() + totalEnd + after
}

func (e *entry) add(other entry) {
	e.Runs += other.Runs
	e.Faults += other.Faults
	e.Missed += other.Missed
	e.Violations += other.Violations
	e.Errors += other.Errors
	e.Minutes += other.Minutes
}

// String returns the numbers of a table row.
func (e *entry) String() string {
	return fmt.Sprintf("| %d | %d | %d | %d | %d | %d |\n", e.Runs, e.Faults, e.Missed, e.Violations, e.Errors, e.Minutes)
}

// commit returns the tree's commit, with "+" if the tree has changes, or "" without git.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty=+").Output() //nolint:noctx // a moment
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
