package main

import (
	"strings"
	"testing"
)

func TestPasted(t *testing.T) {
	const columns = 80
	for _, line := range pasted("/tmp/xylem-demo-1234567890/env") {
		if len(line) > columns {
			t.Errorf("%q has %d columns, want %d at most", line, len(line), columns)
		}
		if strings.ContainsAny(line, "#") {
			t.Errorf("%q has a comment, which not every interactive shell accepts", line)
		}
	}
}
