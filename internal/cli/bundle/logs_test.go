package bundle

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
)

func TestTail(t *testing.T) {
	for name, tc := range map[string]struct {
		log   string
		limit int64
		want  string
	}{
		"empty":                      {"", 10, ""},
		"short":                      {"a\nb\n", 10, "a\nb\n"},
		"without a trailing newline": {"a\nb", 10, "a\nb"},
		"the last lines":             {"first\nsecond\nthird\n", 14, "second\nthird\n"},
		"limit within a line":        {"first\nsecond\nthird\n", 10, "third\n"},
		"one long line":              {strings.Repeat("x", 100), 10, ""},
		"much":                       {strings.Repeat("0123456789\n", 100_000), 25, "0123456789\n0123456789\n"},
		"exactly the limit":          {"a\nb\n", 4, "a\nb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readLogTail(iotest.OneByteReader(strings.NewReader(tc.log)), tc.limit)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if whole, err := readLogTail(strings.NewReader(tc.log), tc.limit); err != nil || whole != tc.want {
				t.Errorf("read in a single call: got %q, %v, want %q", whole, err, tc.want)
			}
		})
	}
}

// TestTailFails checks that tail returns what it read before an error.
func TestTailFails(t *testing.T) {
	broken := errors.New("broken")
	got, err := readLogTail(io.MultiReader(strings.NewReader("a\nb\n"), iotest.ErrReader(broken)), 100)
	if got != "a\nb\n" || !errors.Is(err, broken) {
		t.Errorf("got %q, %v, want what was read and the reader's error", got, err)
	}
}

func TestPortOf(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: 1}, {Name: metricsPort, ContainerPort: 8443}}}}}}
	if got := metricsPortOf(pod); got == nil || *got != "8443" {
		t.Errorf("got %v, want 8443", got)
	}
	if got := metricsPortOf(&corev1.Pod{}); got != nil {
		t.Errorf("got %q for a Pod without ports, want nil", *got)
	}
}
