package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// tableWidth is the maximum width of the demo's own tables.
	tableWidth = 120
	// textWidth is the maximum width of text without columns.
	textWidth = 80 - len("   ")
	// columnGap separates the columns of tables. kubectl uses three spaces.
	columnGap = "  "
)

// Widths of the timeline's columns: time, host, members. With two members and separators, they
// add up to tableWidth.
const (
	timeWidth   = 7
	hostWidth   = 40
	memberWidth = 32
	separator   = " │ "
)

// row formats a line of the timeline, with text in one cluster's column (0 is the host). Text that
// is too wide continues on the next line.
func row(at string, column, columns int, text string) []string {
	width := memberWidth
	if column == 0 {
		width = hostWidth
	}
	var lines []string
	for i, part := range wrap(text, width) {
		cells := []string{pad("", timeWidth)}
		if i == 0 {
			cells[0] = padLeft(at, timeWidth)
		}
		for c := range columns {
			cell, w := "", memberWidth
			if c == 0 {
				w = hostWidth
			}
			if c == column {
				cell = part
			}
			cells = append(cells, pad(cell, w))
		}
		lines = append(lines, strings.TrimRight(strings.Join(cells, separator), " "))
	}
	return lines
}

// wrap breaks text at spaces into lines of at most width characters. It indents all lines except
// the first, and does not break long words.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case length(line)+1+length(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = "  " + word
		}
	}
	return append(lines, line)
}

// elapsed formats a time of the timeline in seconds, with two decimals.
func elapsed(d time.Duration) string { return fmt.Sprintf("+%.2fs", d.Seconds()) }

// seconds formats a duration for a table.
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func length(s string) int { return utf8.RuneCountInString(s) }

func pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-length(s))) }

func padLeft(s string, width int) string { return strings.Repeat(" ", max(0, width-length(s))) + s }

// clip truncates text to a width.
func clip(s string, width int) string {
	if length(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// table aligns rows in columns, two spaces apart.
func table(rows [][]string) []string {
	var width []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], length(cell))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, r := range rows {
		cells := make([]string, 0, len(r))
		for i, cell := range r {
			cells = append(cells, pad(cell, width[i]))
		}
		lines = append(lines, strings.TrimRight(strings.Join(cells, columnGap), " "))
	}
	return lines
}

// unlimitedSize is how kubectl prints a CSIStorageCapacity without a limit.
var unlimitedSize = strconv.Itoa(math.MaxInt64)

// narrow makes kubectl's tables narrower, because they are wider than most terminals. It removes
// columns that are empty in every row, narrows the gaps, and writes "unlimited" for unlimitedSize.
func narrow(output string) []string {
	var lines []string
	for block := range strings.SplitSeq(strings.TrimRight(output, "\n"), "\n\n") {
		if lines != nil {
			lines = append(lines, "")
		}
		lines = append(lines, narrowTable(strings.Split(block, "\n"))...)
	}
	return lines
}

// narrowTable does what narrow does for one table.
func narrowTable(lines []string) []string {
	if len(lines) < 2 {
		return lines
	}
	rows := make([][]string, len(lines))
	for _, column := range columnsOf(lines) {
		says := func(cell string) bool { return cell != "<none>" && cell != "<unset>" && cell != "" }
		if !slices.ContainsFunc(column[1:], says) {
			continue
		}
		for i := range rows {
			rows[i] = append(rows[i], strings.Replace(column[i], unlimitedSize, "unlimited", 1))
		}
	}
	return table(rows)
}

// selectColumns selects columns of one of kubectl's tables by their headers.
func selectColumns(output string, headers []string) []string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	rows := make([][]string, len(lines))
	for _, column := range columnsOf(lines) {
		if !slices.Contains(headers, column[0]) {
			continue
		}
		for i := range rows {
			rows[i] = append(rows[i], column[i])
		}
	}
	return table(rows)
}

// columnsOf splits a table into columns, which begin after two or more spaces in the header.
func columnsOf(lines []string) [][]string {
	var starts []int
	header := lines[0]
	for i := range header {
		if header[i] != ' ' && (i == 0 || i >= 2 && header[i-2:i] == "  ") {
			starts = append(starts, i)
		}
	}
	columns := make([][]string, len(starts))
	for n, start := range starts {
		for _, line := range lines {
			end := len(line)
			if n+1 < len(starts) {
				end = min(end, starts[n+1])
			}
			columns[n] = append(columns[n], strings.TrimSpace(line[min(start, end):end]))
		}
	}
	return columns
}
