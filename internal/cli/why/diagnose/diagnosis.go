package diagnose

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xylem-io/xylem/internal/cli/tree/model"
)

// Kind of what -o json and yaml print, in model.APIVersion. Fields are added, and never renamed
// or removed, within a version.
const Kind = "Diagnosis"

// Verdict sums up a diagnosis.
type Verdict string

// Verdicts.
const (
	// Well: the Pod runs, or has succeeded; the claim is bound.
	Well Verdict = "Well"
	// Waiting: nothing reports a problem, and it is not done yet.
	Waiting Verdict = "Waiting"
	// Problem: something has to be solved.
	Problem Verdict = "Problem"
)

// Diagnosis is the answer of `kubectl xylem why`.
type Diagnosis struct {
	metav1.TypeMeta `json:",inline"`
	// Subject is the Pod or claim, such as `Pod "shop/app"`.
	Subject string  `json:"subject"`
	Verdict Verdict `json:"verdict"`
	// Summary is one sentence: the state of the subject, and its cause.
	Summary string `json:"summary"`
	// ToDo is the next step; empty if there is none.
	ToDo string `json:"toDo,omitempty"`
	// Causes in the order in which they have to be solved. Summary and ToDo are of the first.
	Causes []Cause `json:"causes,omitempty"`
	// Evidence is every object that the diagnosis is based on.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Missing is what could not be read.
	Missing []model.Missing `json:"missing,omitempty"`
	// Recorded are the members of which only the host's records were read.
	Recorded []string `json:"recorded,omitempty"`
}

// DeepCopyObject makes a Diagnosis a runtime.Object, for kubectl's printers. Nothing changes a
// diagnosis, so copies may share their contents.
func (d *Diagnosis) DeepCopyObject() runtime.Object {
	shared := *d
	return &shared
}

// Cause is one problem that an object reports.
type Cause struct {
	Ref `json:",inline"`
	// Reason is Xylem's (REASONS.md) or Kubernetes'.
	Reason string `json:"reason"`
	// What happened, and why: one sentence without a full stop at its end.
	What string `json:"what"`
	// ToDo is the next step; empty if it is not known.
	ToDo string `json:"toDo,omitempty"`
	// Since is when it was reported first, if that is known.
	Since metav1.Time `json:"since,omitempty"`

	stage stage
}

// Ref names an object.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is empty for the host, else the registration of the member.
	Cluster string `json:"cluster,omitempty"`
}

// Evidence is an object with its state, and what it reports.
type Evidence struct {
	Ref        `json:",inline"`
	State      string            `json:"state"`
	Created    *metav1.Time      `json:"created,omitempty"`
	Conditions []model.Condition `json:"conditions,omitempty"`
	Events     []model.Event     `json:"events,omitempty"`
}
