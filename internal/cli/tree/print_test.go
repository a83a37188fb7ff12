package tree

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

func TestTreeOfAHostileMember(t *testing.T) {
	const hostile = "\x1b]52;c;cm0gLXJmIH4=\x07\x1b[2J\u202e\r"
	pod := podNodeWithState("evil", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"},
		Spec:       corev1.PodSpec{NodeName: "n" + hostile},
		Status:     corev1.PodStatus{Phase: corev1.PodPhase("Running" + hostile)},
	})
	leaf := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: new("fast" + hostile)},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.PersistentVolumeClaimPhase("Bound" + hostile)},
	}
	root := nodeOfLeafClaim("evil", &inspect.ClaimFacts{Leaf: leaf, Claim: &corev1.PersistentVolumeClaim{}})
	root.Children = []inspect.Node{pod}

	out := &bytes.Buffer{}
	env := command.NewEnv(genericiooptions.IOStreams{In: out, Out: out, ErrOut: out}, clock.RealClock{})
	page{inspect.Page{Out: env.Out, Width: env.Width(env.Out), Paint: env.PaintOf(env.Out), Now: now}}.printTree(&inspect.Tree{Root: root})
	if strings.ContainsAny(out.String(), "\x1b\x07\r\u202e") {
		t.Errorf("the tree contains characters that a terminal interprets: %q", out)
	}
	for _, want := range []string{"Running", "fast", "data", "web"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing from %q", want, out)
		}
	}
}
