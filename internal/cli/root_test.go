package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/cli"
	"github.com/xylem-io/xylem/internal/cli/command"
)

// plugin runs the plugin without a cluster, and returns its output, including errors.
func plugin(t *testing.T, args ...string) (printed string, code int) {
	t.Helper()
	out := &bytes.Buffer{}
	env := command.NewEnv(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out}, clock.RealClock{})
	code = cli.Run(t.Context(), env, args)
	return out.String(), code
}

func TestSuggestions(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a misspelled command":                   {[]string{"tre"}, "Did you mean this?\n\ttree"},
		"a misspelled flag":                      {[]string{"deregister", "a", "--polcy=Drain"}, "Did you mean --policy?"},
		"a misspelled global flag":               {[]string{"tree", "pvc", "a", "--namspace=shop"}, "Did you mean --namespace?"},
		"the doctor command, misspelled":         {[]string{"docter"}, "Did you mean this?\n\tdoctor"},
		"the support-bundle command, misspelled": {[]string{"support-bundel"}, "Did you mean this?\n\tsupport-bundle"},
		"an invalid output format":               {[]string{"doctor", "-o", "xml"}, "-o xml is unknown: use one of json, yaml"},
		"an invalid duration":                    {[]string{"support-bundle", "--log-since=0s"}, "--log-since=0s is out of range: use a duration greater than 0"},
		"an invalid dry-run mode":                {[]string{"deregister", "a", "--dry-run=yes"}, "use none, client or server"},
	} {
		t.Run(name, func(t *testing.T) {
			printed, code := plugin(t, tc.args...)
			if code == 0 || !strings.Contains(printed, tc.want) {
				t.Errorf("exit code %d, printed %q, want %q", code, printed, tc.want)
			}
		})
	}
}

func TestInheritedFlagsAreInOptions(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"tree", "--help"}, {"register", "--help"}, {"deregister", "--help"}, {"doctor", "--help"}, {"support-bundle", "--help"}} {
		printed, code := plugin(t, args...)
		if code != 0 || strings.Contains(printed, "--certificate-authority") || !strings.Contains(printed, `"kubectl xylem options"`) {
			t.Errorf("%v: exit code %d, want the help with a reference to the global flags, but without them, got\n%s", args, code, printed)
		}
	}
	if printed, code := plugin(t, "options"); code != 0 || !strings.Contains(printed, "--certificate-authority") || !strings.Contains(printed, "--xylem-namespace") {
		t.Errorf("options: exit code %d, want all global flags, got\n%s", code, printed)
	}
}
