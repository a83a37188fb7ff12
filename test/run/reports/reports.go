// Package reports contains the files by which test suites report to test/run what they ran and what
// failed.
package reports

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Env is the environment variable with the directory for the reports. If it is not set, nothing is
// reported.
const Env = "XYLEM_REPORTS"

// RepeatEnv is the environment variable that makes suites repeat a story once if it fails.
const RepeatEnv = "XYLEM_REPEAT"

// Extensions of the files.
const (
	ranExtension      = ".ran"
	failedExtension   = ".failed"
	repeatedExtension = ".repeated"
)

// clockLag is how much the clock of a file system may be late.
const clockLag = time.Second

// Passed reports how many of a suite's stories ran and passed.
func Passed(suite string, passed, of int) error {
	return write(suite+ranExtension, fmt.Appendf(nil, "%s: %d of %d", suite, passed, of))
}

// Failed reports the log of a suite's nth failed story.
func Failed(suite string, n int, log string) error {
	return write(fmt.Sprintf("%s-%d%s", suite, n, failedExtension), []byte(log))
}

// Repeated reports why a suite's nth story failed, which passed when it was repeated.
func Repeated(suite string, n int, log string) error {
	return write(fmt.Sprintf("%s-%d%s", suite, n, repeatedExtension), []byte(log))
}

// Leave leaves a value for the run of the next tier.
func Leave(name string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("report the %s: %w", name, err)
	}
	return write(name+".json", content)
}

// Left reads a value that the run of `make test` left.
func Left(name string, value any) error {
	content, err := os.ReadFile(filepath.Join(os.Getenv(Env), name+".json")) //nolint:gosec // our own report
	if err != nil {
		return fmt.Errorf("the stories of make test have not left their %s; run make test-all: %w", name, err)
	}
	return json.Unmarshal(content, value)
}

func write(name string, content []byte) error {
	dir := os.Getenv(Env)
	if dir == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil { //nolint:gosec // our own report
		return fmt.Errorf("report to test/run: %w", err)
	}
	return nil
}

// Ran returns what ran since a time: the suites' stories, and the Go packages in the output of go test.
func Ran(dir string, output []byte, since time.Time) (string, error) {
	suites, err := read(dir, ranExtension, since)
	if err != nil {
		return "", err
	}
	var ran []string
	for _, name := range slices.Sorted(maps.Keys(suites)) {
		ran = append(ran, suites[name])
	}
	packages := 0
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "ok  \t") && !strings.Contains(line, "[no tests to run]") {
			packages++
		}
	}
	if packages > 0 {
		ran = append(ran, fmt.Sprintf("%d packages passed", packages))
	}
	return strings.Join(ran, ", "), nil
}

// Failures returns the logs, by suite and number, of the stories that have failed since a time.
func Failures(dir string, since time.Time) (map[string]string, error) {
	return read(dir, failedExtension, since)
}

// Repetitions returns, by suite and number, why stories failed since a time that passed when they were repeated.
func Repetitions(dir string, since time.Time) (map[string]string, error) {
	return read(dir, repeatedExtension, since)
}

// read returns the reports that were written since a time, by their names without the extension.
func read(dir, extension string, since time.Time) (map[string]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*"+extension))
	if err != nil {
		return nil, fmt.Errorf("read the reports: %w", err)
	}
	texts := map[string]string{}
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read the reports: %w", err)
		}
		if info.ModTime().Before(since.Add(-clockLag)) {
			continue
		}
		text, err := os.ReadFile(path) //nolint:gosec // our own report
		if err != nil {
			return nil, fmt.Errorf("read the reports: %w", err)
		}
		texts[strings.TrimSuffix(filepath.Base(path), extension)] = string(text)
	}
	return texts, nil
}
