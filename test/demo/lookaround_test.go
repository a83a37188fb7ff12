package main

import (
	"strings"
	"testing"
)

func TestPasted(t *testing.T) {
	const columns = 80
	prepare, commands := pasted("/home/user/xylem", "/tmp/xylem-demo-1234567890/env")
	for _, line := range append(prepare, commands...) {
		if len(line) > columns {
			t.Errorf("%q has %d columns, want %d at most", line, len(line), columns)
		}
		if strings.ContainsAny(line, "#") {
			t.Errorf("%q has a comment, which not every interactive shell accepts", line)
		}
	}
}
