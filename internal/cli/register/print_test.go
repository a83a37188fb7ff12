package register

import (
	"bytes"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/cli/command"
)

func TestClassesOfAHostileMember(t *testing.T) {
	out := &bytes.Buffer{}
	env := command.NewEnv(genericiooptions.IOStreams{In: out, Out: out, ErrOut: out}, clock.RealClock{})
	if err := printClasses(env.Out, []storagev1.StorageClass{{
		ObjectMeta: metav1.ObjectMeta{Name: "\x1b]52;c;AAAA\x07fast\u202e"}, Provisioner: "p\x1b[31m\rq",
	}}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\x07\r\u202e") || !strings.Contains(out.String(), "fast") {
		t.Errorf("got %q, want the class without characters that a terminal interprets", out)
	}
}
