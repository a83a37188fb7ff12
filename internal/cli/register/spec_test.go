package register

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestNamespaces(t *testing.T) {
	earlier := map[string]string{"team": "search"}
	key := strings.Repeat("k", 64)
	var many []string
	for i := range labelsLimit + 1 {
		many = append(many, strings.Repeat("k", i+1)+"=v")
	}
	for name, c := range map[string]struct {
		args []string
		want map[string]string
		says string
	}{
		"no flag":                         {want: earlier},
		"empty":                           {args: []string{"--namespaces", ""}},
		"one":                             {args: []string{"--namespaces", "example.com/team=payments"}, want: map[string]string{"example.com/team": "payments"}},
		"two":                             {args: []string{"--namespaces=team=payments,tier=gold"}, want: map[string]string{"team": "payments", "tier": "gold"}},
		"an empty value":                  {args: []string{"--namespaces=batch="}, want: map[string]string{"batch": ""}},
		"no equals sign":                  {args: []string{"--namespaces=team"}, says: `"team": the label has no "="`},
		"no key":                          {args: []string{"--namespaces==payments"}, says: `because of "=payments": `},
		"a trailing comma":                {args: []string{"--namespaces=team=payments,"}, says: `because of "": `},
		"a space after the comma":         {args: []string{"--namespaces=team=payments, tier=gold"}, says: `because of " tier=gold": `},
		"a selector expression":           {args: []string{"--namespaces=team!=payments"}, says: `because of "team!=payments": `},
		"a duplicate key":                 {args: []string{"--namespaces=team=a,team=b"}, says: `"team=b": an earlier label has the same key`},
		"a key that is too long":          {args: []string{"--namespaces=" + key + "=a"}, says: "63"},
		"a value with invalid characters": {args: []string{"--namespaces=team=a/b"}, says: "Use KEY=VALUE[,KEY=VALUE], such as example.com/team=payments"},
		"too many labels":                 {args: []string{"--namespaces=" + strings.Join(many, ",")}, says: "17 labels, but a registration allows at most 16"},
	} {
		t.Run(name, func(t *testing.T) {
			var s specFlags
			command := &cobra.Command{}
			s.AddFlags(command)
			if err := command.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			err := s.Validate()
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "--namespaces") {
					t.Fatalf("got %v, want %q", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := v1alpha1.ClusterRegistrationSpec{Namespaces: v1alpha1.NamespacesSpec{MatchLabels: earlier, Allow: []string{"team-*"}}}
			s.ApplyTo(&got)
			want := v1alpha1.NamespacesSpec{MatchLabels: c.want, Allow: []string{"team-*"}}
			if diff := cmp.Diff(want, got.Namespaces); diff != "" {
				t.Error(diff)
			}
		})
	}
}
