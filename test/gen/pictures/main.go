package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"
)

const (
	// directory contains the pictures and their sources.
	directory = ".github/images"
	// recording is the file that contains the drawn part of the demo's output.
	recording = "demo.txt"
	// suffix is the suffix of the templates' file names.
	suffix = ".svg.tmpl"
)

func main() {
	from := flag.String("recording", "", "Output of the demo, from which to extract the recording before drawing.")
	verify := flag.Bool("verify", false, "Write nothing; fail if a picture differs from its source.")
	chromium := flag.String("chromium", "", "Chromium's executable, in which to render the pictures and check their texts, instead of drawing them.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *chromium != "" {
		err = readable(ctx, directory, *chromium)
	} else {
		err = run(directory, *from, *verify)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// readable renders every picture, and checks that its texts can be read.
func readable(ctx context.Context, dir, chromium string) error {
	pictures, err := draw(dir)
	if err != nil {
		return err
	}
	var wrong []error
	for path, picture := range pictures {
		r, err := render(ctx, chromium, picture)
		if err == nil {
			err = r.check()
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", path, err))
		}
	}
	return errors.Join(wrong...)
}

func run(dir, from string, verify bool) error {
	if from != "" {
		if err := record(from, filepath.Join(dir, recording)); err != nil {
			return err
		}
	}
	pictures, err := draw(dir)
	if err != nil {
		return err
	}
	var wrong []error
	for path, want := range pictures {
		if !verify {
			wrong = append(wrong, os.WriteFile(path, want, 0o644)) //nolint:gosec // A picture of the repository.
			continue
		}
		if has, err := os.ReadFile(path); err != nil || !bytes.Equal(has, want) { //nolint:gosec // Named by draw.
			wrong = append(wrong, fmt.Errorf("%s is out of date: run make pictures", path))
		}
	}
	return errors.Join(wrong...)
}

// record extracts the recording from the demo's output.
func record(from, to string) error {
	output, err := os.ReadFile(from) //nolint:gosec // Named on the command line.
	if err != nil {
		return fmt.Errorf("read the demo's output: %w", err)
	}
	part, err := excerpt(string(output))
	if err != nil {
		return fmt.Errorf("extract the recording from %s: %w", from, err)
	}
	return os.WriteFile(to, []byte(part), 0o644) //nolint:gosec // A page of the repository.
}

// draw returns every picture, by path.
func draw(dir string) (map[string][]byte, error) {
	pictures := map[string][]byte{}
	sources, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		t, err := template.ParseFiles(source)
		if err != nil {
			return nil, fmt.Errorf("read a template: %w", err)
		}
		for _, p := range palettes {
			var out bytes.Buffer
			if err := t.Execute(&out, p); err != nil {
				return nil, fmt.Errorf("draw %s: %w", source, err)
			}
			pictures[strings.TrimSuffix(source, suffix)+"-"+p.Name+".svg"] = out.Bytes()
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, recording)) //nolint:gosec // Of this repository.
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	name := filepath.Join(dir, strings.TrimSuffix(recording, filepath.Ext(recording)))
	for _, p := range palettes {
		pictures[name+"-"+p.Name+".svg"] = terminal(string(text), p)
	}
	return pictures, nil
}
