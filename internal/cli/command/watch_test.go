package command

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestWatch checks that --watch prints a document for each change, and that no document is lost or
// repeated.
func TestWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		format string
		watch  bool
	}{
		"json":                {"json", true},
		"yaml":                {"yaml", true},
		"json, without watch": {"json", false},
	} {
		t.Run(name, func(t *testing.T) {
			clock, out := clocktesting.NewFakeClock(time.Unix(0, 0)), &bytes.Buffer{}
			env := NewEnv(genericiooptions.IOStreams{In: out, Out: out, ErrOut: out}, clock)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			output, names, shown := &Output{Format: tc.format}, []string{"a", "a", "b", "b", "a"}, ""
			read := func() (*corev1.Node, error) {
				node := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: names[0]}}
				if names = names[1:]; len(names) == 0 {
					cancel()
				} else {
					go func() {
						for !clock.HasWaiters() && ctx.Err() == nil {
							runtime.Gosched()
						}
						clock.Step(watchEvery)
					}()
				}
				return node, nil
			}
			if err := Watch(ctx, env, tc.watch, read, func(n *corev1.Node) error {
				shown += n.Name
				return output.Print(out, n)
			}); err != nil {
				t.Fatal(err)
			}
			want, documents := "aba", 3
			if !tc.watch {
				want, documents = "a", 1
			}
			if shown != want || bytes.Count(out.Bytes(), []byte("Node")) != documents {
				t.Errorf("printed %q, want %q:\n%s", shown, want, out)
			}
			if separators := bytes.Count(out.Bytes(), []byte("---\n")); tc.format == "yaml" && separators != documents-1 {
				t.Errorf("%d documents have %d separators:\n%s", documents, separators, out)
			}
		})
	}
}
