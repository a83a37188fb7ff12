package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBounding(t *testing.T) {
	// all capabilities except CAP_SYS_RESOURCE, number 24
	held, err := bounding("Name:\trunc\nCapEff:\t0000000000000000\nCapBnd:\t000001fffeffffff\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(held) != len(capabilities)-1 || slices.Contains(held, "CAP_SYS_RESOURCE") || !slices.Contains(held, "CAP_CHECKPOINT_RESTORE") {
		t.Errorf("got capabilities %v, want all except CAP_SYS_RESOURCE", held)
	}
	for name, status := range map[string]string{"the line is missing": "Name:\trunc\n", "the value is not a number": "CapBnd:\tall\n"} {
		if held, err := bounding(status); err == nil {
			t.Errorf("%s: got capabilities %v, want an error", name, held)
		}
	}
}

func TestWithout(t *testing.T) {
	held := []string{"CAP_CHOWN", "CAP_SYS_ADMIN"}
	cases := map[string]struct {
		path     []string
		was, now string
	}{
		"a container": {
			[]string{"process"},
			`{"process":{"capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_RESOURCE"],"effective":["CAP_SYS_RESOURCE"]}},"linux":{"limit":9223372036854775807}}`,
			`{"process":{"capabilities":{"bounding":["CAP_CHOWN"],"effective":[]}},"linux":{"limit":9223372036854775807}}`,
		},
		"a process in a running container": {
			nil,
			`{"capabilities":{"permitted":["CAP_SYS_ADMIN","CAP_BPF"]},"args":["sh"]}`,
			`{"capabilities":{"permitted":["CAP_SYS_ADMIN"]},"args":["sh"]}`,
		},
		"a process without capabilities gets none": {[]string{"process"}, `{"process":{"args":["sh"]}}`, `{"process":{"args":["sh"]}}`},
		"a container without a process":            {[]string{"process"}, `{}`, `{}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := without([]byte(c.was), held, c.path...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(normal(t, []byte(c.now)), normal(t, got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if _, err := without([]byte("not JSON"), held); err == nil {
		t.Error("got no error for input that is not JSON")
	}
}

// normal returns the same JSON with sorted keys and unchanged numbers.
func normal(t *testing.T, text []byte) map[string]json.RawMessage {
	t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}
