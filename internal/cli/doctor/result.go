package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/wording"
)

// Kind is the kind, in model.APIVersion, of the object that -o json and -o yaml print. Within a
// version, fields are added but never renamed or removed.
const Kind = "Checkup"

// Level is the severity of a finding.
type Level string

// Levels.
const (
	// OK means that the check found no problem.
	OK Level = "OK"
	// Warning means that something does not work optimally, or will stop working.
	Warning Level = "Warning"
	// Error means that something does not work, or is not protected.
	Error Level = "Error"
)

// Checkup is the result of `kubectl xylem doctor`.
type Checkup struct {
	metav1.TypeMeta `json:",inline"`
	// Findings lists the host's findings first, then those of each member, ordered by name.
	Findings []Finding `json:"findings"`
	// Missing lists what could not be checked.
	Missing []inspect.Missing `json:"missing,omitempty"`
	// Counts contains the number of findings by level.
	Counts Counts `json:"counts"`
}

// Counts contains the number of findings by level.
type Counts struct {
	OK       int `json:"ok"`
	Warnings int `json:"warnings"`
	Errors   int `json:"errors"`
}

// DeepCopyObject makes a Checkup a runtime.Object for kubectl's printers. A Checkup never
// changes, so copies may share their contents.
func (c *Checkup) DeepCopyObject() runtime.Object {
	shared := *c
	return &shared
}

// Finding is the result of one check.
type Finding struct {
	Level Level `json:"level"`
	// Check is the name of the check.
	Check Check `json:"check"`
	// Cluster is the registration of the member. It is empty for the host.
	Cluster string `json:"cluster,omitempty"`
	// Message describes what was found, and why.
	Message string `json:"message"`
	// ToDo is the next step. It is empty if there is nothing to do.
	ToDo string `json:"toDo,omitempty"`
}

// passed returns the finding of a check that found no problem.
func passed(format string, args ...any) Finding {
	return Finding{Level: OK, Message: fmt.Sprintf(format, args...)}
}

// problem returns the finding of a check that found a problem.
func problem(level Level, message, toDo string) Finding {
	return Finding{Level: level, Message: message, ToDo: toDo}
}

// ofMember returns the finding as one about a member.
func (f Finding) ofMember(registration string) Finding {
	f.Cluster = registration
	return f
}

// Check is the name of a check.
type Check string

// NewCheckup sorts the findings by cluster, and counts them.
func NewCheckup(findings []Finding, missing []inspect.Missing) *Checkup {
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Cluster, b.Cluster) })
	c := &Checkup{TypeMeta: metav1.TypeMeta{APIVersion: inspect.APIVersion, Kind: Kind}, Findings: slices.Clip(findings), Missing: missing}
	if c.Findings == nil {
		c.Findings = []Finding{}
	}
	for _, f := range findings {
		switch f.Level {
		case OK:
			c.Counts.OK++
		case Warning:
			c.Counts.Warnings++
		case Error:
			c.Counts.Errors++
		}
	}
	return c
}

// enumerateNamed enumerates objects: `PersistentVolumes "a", "b", and 3 more`.
func enumerateNamed(kind string, names []string) string {
	plural := strings.TrimPrefix(wording.CountNoun(len(names), kind), fmt.Sprint(len(names))+" ")
	quoted := make([]string, 0, len(names))
	for _, name := range names {
		quoted = append(quoted, strconv.Quote(name))
	}
	return plural + " " + wording.FirstNames(quoted, wording.NamesListed, ", ")
}

// enumerateFirst joins the first few names, and counts the rest.
func enumerateFirst(all []string) string {
	return wording.FirstNames(all, wording.NamesListed, ", ")
}
