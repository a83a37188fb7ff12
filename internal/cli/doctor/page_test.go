package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xylem-io/xylem/internal/cli/inspect"
)

func TestPage(t *testing.T) {
	c := &Checkup{
		Findings: []Finding{
			{Level: OK, Check: CheckKubernetes, Message: "the host runs Kubernetes v1.36.3"},
			{Level: Warning, Check: CheckClock, Message: "the clock is wrong", ToDo: "Set it"},
			{Level: OK, Check: CheckConnection, Cluster: "a", Message: "it responds"},
			{Level: Error, Check: CheckRights, Cluster: "b", Message: "a role is missing.", ToDo: "Grant it"},
		},
		Missing: []inspect.Missing{{What: "Secrets", Cluster: "b", Why: "forbidden"}, {What: "PersistentVolumes", Why: "forbidden"}},
		Counts:  Counts{OK: 2, Warnings: 1, Errors: 1},
	}
	for name, tc := range map[string]struct {
		page page
		want string
	}{
		"all": {page{}, `Host
  ok       the host runs Kubernetes v1.36.3.
  warning  the clock is wrong.
           To do: Set it.
Member a
  ok       it responds.
Member b
  error    a role is missing.
           To do: Grant it.
Not checked
  Secrets in b: forbidden
  PersistentVolumes: forbidden

2 ok, 1 warning, 1 error
`},
		"problems, on a narrow terminal": {page{Page: inspect.Page{Width: 30}, problems: true}, `Host
  warning  the clock is wrong.
           To do: Set it.
Member b
  error    a role is missing.
           To do: Grant it.
Not checked
  Secrets in b: forbidden
  PersistentVolumes: forbidden

2 ok, 1 warning, 1 error
`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, printed(tc.page, c)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := printed(page{problems: true}, &Checkup{Counts: Counts{OK: 3}}); got != "3 ok, 0 warnings, 0 errors\n" {
		t.Errorf("got %q, want only the counts", got)
	}
}

func printed(p page, c *Checkup) string {
	var out strings.Builder
	p.Out = &out
	p.printCheckup(c)
	return out.String()
}
