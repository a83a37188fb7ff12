package why

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/wording"
)

// DiagnoseWorkload returns the diagnosis for a workload: that of the first of its Pods that has a problem,
// else the problem that the workload itself reports, else what one of its Pods waits for.
func DiagnoseWorkload(owner *inspect.Node, pods []*inspect.Facts) *Diagnosis {
	d := &Diagnosis{TypeMeta: metav1.TypeMeta{APIVersion: inspect.APIVersion, Kind: Kind}, Subject: describeSubject(owner), Verdict: Waiting, Evidence: appendEvidence(owner, nil)}
	progress := owner.Details[len(owner.Details)-1]
	if owner.Health == inspect.Good {
		d.Verdict, d.Summary = Well, fmt.Sprintf("%s is ready: %s", d.Subject, progress)
		return d
	}
	if len(pods) == 0 {
		d.Summary, d.ToDo = fmt.Sprintf("%s is not ready (%s): its controller has not created a Pod yet", d.Subject, progress), "See the events in `kubectl describe`: a quota or a policy may reject the Pods."
	} else {
		d.Summary = fmt.Sprintf("%s is not ready yet (%s), but no problem is known of its %s", d.Subject, progress, wording.CountNoun(len(pods), "Pod"))
	}
	others := 0
	for _, facts := range pods {
		switch one := DiagnoseSubject(facts); {
		case one.Verdict == Well:
		case one.Verdict == Problem && d.Verdict == Problem:
			others++
		case one.Verdict == Problem || len(d.Evidence) == 1: // the first Pod that waits
			d.Verdict, d.ToDo, d.Causes, d.Missing, d.Recorded = one.Verdict, one.ToDo, one.Causes, one.Missing, one.Recorded
			d.Summary = fmt.Sprintf("%s is not ready (%s): %s", d.Subject, progress, one.Summary)
			d.Evidence = append(appendEvidence(owner, nil), one.Evidence...)
		}
	}
	if others > 0 {
		d.Summary += fmt.Sprintf(" (%s too: see `kubectl xylem tree %s/%s -n %s --problems`)", wording.CountNoun(others, "other Pod"), strings.ToLower(owner.Kind), owner.Name, owner.Namespace)
	}
	own := walk{root: owner}
	for _, c := range owner.Conditions {
		own.addCause(owner, stageClaim, c.Reason, c.Message, c.Since)
	}
	switch {
	case len(own.causes) == 0:
	case d.Verdict == Problem:
		d.Causes = append(d.Causes, own.causes...)
	default:
		first := own.causes[0]
		d.Verdict, d.ToDo, d.Causes = Problem, first.ToDo, append(own.causes, d.Causes...)
		d.Summary = fmt.Sprintf("%s is not ready (%s): %s", d.Subject, progress, first.What)
	}
	return d
}
