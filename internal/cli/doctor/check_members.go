package doctor

import (
	"fmt"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/wording"
)

// CheckMembers is the name of this check.
const CheckMembers Check = "Members"

var membersCheck = checkOf[*Facts]{name: CheckMembers, judge: infallible(judgeRegistrations)}

// judgeRegistrations reports the conditions of registrations that an admin must check.
func judgeRegistrations(f *Facts) []Finding {
	h := &f.Host
	if !h.Registrations.Read || h.Definition.Absent() {
		return nil
	}
	var found []Finding
	for i := range h.Registrations.Items {
		r := &h.Registrations.Items[i]
		for _, c := range inspect.RegistrationProblems(r) {
			level := Warning
			switch c.Type {
			case v1alpha1.ConditionConnected, v1alpha1.ConditionNodeReady, v1alpha1.ConditionSynced:
				if c.Status != "True" {
					level = Error
				}
			}
			what, toDo := inspect.ExplainReason(c.Reason, c.Message)
			found = append(found, problem(level, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, what), toDo).ofMember(r.Name))
		}
	}
	switch n := len(h.Registrations.Items); {
	case n == 0:
		return []Finding{passed("no cluster is registered yet")}
	case len(found) == 0:
		found = append(found, passed("%s, and the manager reports no problems", wording.CountNoun(n, "registration")))
	}
	for i := range h.Registrations.Items {
		if lifted := placement.LiftedDenials(&h.Registrations.Items[i]); len(lifted) > 0 {
			found = append(found, passed("spec.namespaces.deny %s", placement.LiftedDenialsText(lifted)).ofMember(h.Registrations.Items[i].Name))
		}
	}
	return found
}
