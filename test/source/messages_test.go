package source

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inspectMessages lists the functions that inspect a message but do not base a decision on it, each
// with its purpose. An unnecessary entry fails the test.
var inspectMessages = map[string]string{
	"internal/cli/inspect.Plain":                             "puts text on one line, for a terminal",
	"internal/cli/inspect.Wrap":                              "wraps text, for a terminal",
	"internal/cli/inspect.split":                             "prints what happened and what to do on separate lines",
	"internal/cli/why.walk.snapshot":                         "prints the reason of the event with the same message as a snapshot's error, which has none",
	"internal/cli/inspect.toDoFor":                           "prints what REASONS.md advises for the reason at the beginning of the message",
	"internal/cli/inspect.EndSentence":                       "ends a sentence, for display",
	"internal/mirror/hostpv.VolumeDriftOf":                   "compares names of VolumeAttributesClasses, which a member sends as text",
	"internal/mirror/pvc.AttributesClassChangeOf":            "compares names of VolumeAttributesClasses, which a member sends as text",
	"internal/mirror.PlainLine":                              "puts text on one line, for display",
	"internal/mirror.PlainText":                              "removes control characters and truncates, for display",
	"internal/mirror/snapshot.FailedStatus":                  "keeps the time of a report if its message is unchanged",
	"internal/mirror/snapshot.ContentRecord.MatchesHandleOf": "compares snapshot handles, which a member sends as text",
	"internal/mirror/snapshot.ContentRecord.MatchesDisk":     "compares handles of disks, which a member sends as text",
	"internal/snapshot.Observed.IsRecreatedContent":          "compares snapshot handles, which a member sends as text",
	"internal/snapshot.Observed.IsContentRecorded":           "compares snapshot handles, which a member sends as text",
	"internal/mirror/report.OwnProblem":                      "keeps one member's message for display, without earlier messages from others",
}

func TestNoDecisionReadsMessageText(t *testing.T) {
	used := map[string]bool{}
	for _, r := range inspections(product(t)) {
		if used[r.function] = true; inspectMessages[r.function] == "" {
			t.Errorf("%s: %s inspects a message with %s. Pass the fact in a field, an annotation or a reason. Only internal/wording parses other programs' messages", r.at, r.function, r.how)
		}
	}
	for function := range inspectMessages {
		if !used[function] {
			t.Errorf("%s no longer inspects a message: remove the exception", function)
		}
	}
}

// TestInspectionsAreFound checks that the analysis finds each way to inspect a message.
func TestInspectionsAreFound(t *testing.T) {
	var found []string
	for _, r := range inspections(productWith(t, "reads")) {
		if name, ok := strings.CutPrefix(r.function, "internal/controller/reads."); ok {
			found = append(found, name+" "+r.how)
		}
	}
	want := []string{
		"direct strings.HasPrefix", "byVariable strings.Contains", "searched regexp.MatchString", "byResult ==", "ofError ==", "bySwitch a switch",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
