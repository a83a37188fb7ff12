package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Sizes in the terminal, in pixels. A glyph is 0.6 times as wide as the font size. Lines are
// stretched to this width, so that columns align in any font.
const (
	fontSize   = 13
	glyphWidth = 7.8
	lineHeight = 18
	margin     = 16
	titleBar   = 30
)

// sections are the prefixes of the titles of the recorded sections. The recording ends with the
// verdict.
var sections = []string{"A claim and a Deployment"}

// verdict is a part of the last line of the recording.
const verdict = "checks passed"

// sectionMark matches the line that begins a section: its number, unless it has none, and its title.
var sectionMark = regexp.MustCompile(`^== (?:\d+ of \d+: )?(.*)`)

// sgr matches an SGR sequence, which changes the style of the text after it.
var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// plain removes the SGR sequences from a text.
func plain(text string) string { return sgr.ReplaceAllString(text, "") }

// excerpt extracts the recording from the demo's output: the sections and the verdict.
func excerpt(output string) (string, error) {
	var kept []string
	in, found, ended := false, 0, false
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, " \r\n")
		if title := sectionMark.FindStringSubmatch(plain(line)); title != nil {
			in = slices.ContainsFunc(sections, func(s string) bool { return strings.HasPrefix(title[1], s) })
			if in {
				found++
			}
		}
		if strings.Contains(plain(line), verdict) {
			in, ended = true, true
		}
		if in {
			kept = append(kept, line)
		}
	}
	if found != len(sections) || !ended {
		return "", errors.New("a section or the verdict is missing: the demo failed, or its titles changed")
	}
	return strings.Join(kept, "\n") + "\n", nil
}

// span is text in one style.
type span struct {
	text, color string
	bold        bool
}

// spans splits a line where its style changes.
func spans(line string, p palette) []span {
	var all []span
	now := span{color: p.Fore}
	for line != "" {
		at := sgr.FindStringSubmatchIndex(line)
		if at == nil {
			at = []int{len(line), len(line), 0, 0}
		}
		if at[0] > 0 {
			now.text = line[:at[0]]
			all = append(all, now)
		}
		now.bold, now.color = restyle(line[at[2]:at[3]], now.bold, now.color, p)
		line = line[at[1]:]
	}
	return all
}

// restyle applies an SGR sequence's parameters to a style.
func restyle(parameters string, bold bool, color string, p palette) (bool, string) {
	colors := map[string]string{"2": p.Dim, "31": p.Red, "32": p.Green, "33": p.Yellow}
	for parameter := range strings.SplitSeq(parameters, ";") {
		switch {
		case parameter == "0" || parameter == "":
			bold, color = false, p.Fore
		case parameter == "1":
			bold = true
		case colors[parameter] != "":
			color = colors[parameter]
		}
	}
	return bold, color
}

// terminal draws text as a terminal shows it.
func terminal(text string, p palette) []byte {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	columns := 0
	for _, line := range lines {
		columns = max(columns, utf8.RuneCountInString(plain(line)))
	}
	width := int(float64(columns)*glyphWidth) + 2*margin
	height := titleBar + len(lines)*lineHeight + margin
	var out bytes.Buffer
	fmt.Fprintf(&out, "<svg xmlns=%q width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Output of make demo\">\n",
		"http://www.w3.org/2000/svg", width, height, width, height)
	fmt.Fprintf(&out, "<rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\" fill=%q stroke=%q/>\n", width-1, height-1, p.Back, p.Line)
	for i, color := range []string{p.Red, p.Yellow, p.Green} {
		fmt.Fprintf(&out, "<circle cx=\"%d\" cy=\"%d\" r=\"5\" fill=%q/>\n", margin+5+i*16, titleBar/2, color)
	}
	fmt.Fprintf(&out, "<g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"%d\">\n", fontSize)
	for i, line := range lines {
		column := 0
		for _, s := range spans(line, p) {
			length := utf8.RuneCountInString(s.text)
			if strings.TrimSpace(s.text) != "" {
				drawSpan(&out, s, float64(margin)+float64(column)*glyphWidth, titleBar+(i+1)*lineHeight-4, float64(length)*glyphWidth)
			}
			column += length
		}
	}
	out.WriteString("</g>\n</svg>\n")
	return out.Bytes()
}

func drawSpan(out *bytes.Buffer, s span, x float64, y int, length float64) {
	weight := ""
	if s.bold {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\" fill=%q%s>", x, y, length, s.color, weight)
	// Browsers collapse plain spaces, and Chromium ignores xml:space on a group.
	_ = xml.EscapeText(out, []byte(strings.ReplaceAll(s.text, " ", "\u00a0"))) // A Buffer's Write returns no error.
	out.WriteString("</text>\n")
}
