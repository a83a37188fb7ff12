package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// patience is how long Chromium may take to render one picture.
const patience = time.Minute

// measure replaces a page with what the browser drew: each text of the picture with its characters and its box.
const measure = `<script>
const svg = document.querySelector("svg"), picture = svg.getBoundingClientRect();
const texts = [...svg.querySelectorAll("text")].map(t => {
  const b = t.getBoundingClientRect();
  return {
    text: t.textContent, drawn: t.getNumberOfChars(),
    left: b.left - picture.left, top: b.top - picture.top, right: b.right - picture.left, bottom: b.bottom - picture.top,
  };
});
document.body.textContent = JSON.stringify({width: picture.width, height: picture.height, texts});
</script>`

// measured matches the result of measure in the document that Chromium prints.
var measured = regexp.MustCompile(`<body>(\{.*\})`)

// rendered is a picture as a browser drew it. Lengths are in pixels, from the picture's upper left corner.
type rendered struct {
	Width, Height float64
	Texts         []box
}

// box is where a browser drew a text.
type box struct {
	Text                     string
	Drawn                    int // characters, without those that the browser collapsed
	Left, Top, Right, Bottom float64
}

// render draws a picture in Chromium.
func render(ctx context.Context, chromium string, picture []byte) (*rendered, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dir, err := os.MkdirTemp("", "pictures-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	page := filepath.Join(dir, "page.html")
	if err := os.WriteFile(page, slices.Concat([]byte(`<!DOCTYPE html><meta charset="utf-8"><body>`), picture, []byte(measure)), 0o600); err != nil {
		return nil, err
	}
	// The sandbox needs rights that root in a container lacks, and the page is the repository's own.
	run := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", //nolint:gosec // Named on the command line.
		"--disable-dev-shm-usage", "--user-data-dir="+filepath.Join(dir, "profile"), "--dump-dom", "file://"+page)
	document, err := run.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", chromium, err)
	}
	found := measured.FindSubmatch(document)
	if found == nil {
		return nil, fmt.Errorf("%s printed no measurements", chromium)
	}
	var r rendered
	if err := json.Unmarshal([]byte(html.UnescapeString(string(found[1]))), &r); err != nil {
		return nil, fmt.Errorf("read Chromium's measurements: %w", err)
	}
	return &r, nil
}

// check returns an error for each text that cannot be read as it was meant: outside the picture, over another text, or
// without its spaces.
func (r *rendered) check() error {
	var wrong []error
	if len(r.Texts) == 0 {
		wrong = append(wrong, errors.New("no text was drawn"))
	}
	for i, t := range r.Texts {
		if n := len([]rune(t.Text)); t.Drawn != n {
			wrong = append(wrong, fmt.Errorf("%d of the %d characters of %q were drawn", t.Drawn, n, t.Text))
		}
		if t.Left < 0 || t.Top < 0 || t.Right > r.Width || t.Bottom > r.Height {
			wrong = append(wrong, fmt.Errorf("%q leaves the picture", t.Text))
		}
		for _, other := range r.Texts[:i] {
			if t.covers(other) {
				wrong = append(wrong, fmt.Errorf("%q and %q overlap", other.Text, t.Text))
			}
		}
	}
	return errors.Join(wrong...)
}

// covers reports whether two texts overlap by more than the empty space around their letters: a box is as high as the
// font, and lines may be closer than that.
func (b box) covers(other box) bool {
	return min(b.Right, other.Right)-max(b.Left, other.Left) > 1 && min(b.Bottom, other.Bottom)-max(b.Top, other.Top) > (b.Bottom-b.Top)/3
}
