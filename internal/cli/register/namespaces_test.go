package register

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
)

func TestAdviseOnDenied(t *testing.T) {
	for name, tc := range map[string]struct {
		spec v1alpha1.NamespacesSpec
		says string
	}{
		"the default":                  {},
		"a list replaces the default":  {spec: v1alpha1.NamespacesSpec{Deny: &[]string{"*-system", "dev-*"}}, says: `note: spec.namespaces.deny of registration "a" replaces the default, so the member also accepts namespaces that match openshift*, istio-*, cert-manager. `},
		"a list extends the default":   {spec: v1alpha1.NamespacesSpec{Deny: new(append(v1alpha1.DefaultDeniedNamespaces(), "dev-*"))}},
		"other names are not accepted": {spec: v1alpha1.NamespacesSpec{Allow: []string{"team-*"}, Deny: &[]string{}}},
	} {
		t.Run(name, func(t *testing.T) {
			printed := &bytes.Buffer{}
			r := run{name: "a", before: &v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{Namespaces: tc.spec}}}
			r.Env = command.NewEnv(genericiooptions.IOStreams{In: printed, Out: printed, ErrOut: printed}, clock.RealClock{})
			r.spec.AddFlags(&cobra.Command{})
			r.adviseOnDenied()
			if got := printed.String(); !strings.HasPrefix(got, tc.says) || tc.says == "" && got != "" {
				t.Errorf("printed %q, want %q", got, tc.says)
			}
		})
	}
}
