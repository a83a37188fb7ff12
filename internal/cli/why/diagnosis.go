package why

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/timeline"
)

// Kind is the kind, in model.APIVersion, of the object that -o json and -o yaml print. Within a
// version, fields are added but never renamed or removed.
const Kind = "Diagnosis"

// Verdict summarizes a diagnosis.
type Verdict string

// Verdicts.
const (
	// Well means that the Pod runs or has succeeded, or that the claim is bound.
	Well Verdict = "Well"
	// Waiting means that nothing reports a problem, but the Pod or claim is not ready yet.
	Waiting Verdict = "Waiting"
	// Problem means that a problem must be solved.
	Problem Verdict = "Problem"
)

// Diagnosis is the result of `kubectl xylem why`.
type Diagnosis struct {
	metav1.TypeMeta `json:",inline"`
	// Subject is the Pod or claim, such as `Pod "shop/app"`.
	Subject string  `json:"subject"`
	Verdict Verdict `json:"verdict"`
	// Summary is one sentence with the subject's state and its cause.
	Summary string `json:"summary"`
	// ToDo is the next step, or empty.
	ToDo string `json:"toDo,omitempty"`
	// Causes lists the problems in the order in which they must be solved. If the verdict is Problem,
	// Summary and ToDo describe the first.
	Causes []Cause `json:"causes,omitempty"`
	// Evidence lists the objects that the diagnosis is based on.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Times are the steps of a claim so far, in order. A step is omitted if its start or end is not
	// known.
	Times []timeline.Step `json:"times,omitempty"`
	// Missing lists what could not be read.
	Missing []inspect.Missing `json:"missing,omitempty"`
	// Recorded are the members whose objects are known only from the host's records.
	Recorded []string `json:"recorded,omitempty"`
}

// DeepCopyObject makes a Diagnosis a runtime.Object for kubectl's printers. A Diagnosis never
// changes, so copies may share their contents.
func (d *Diagnosis) DeepCopyObject() runtime.Object {
	shared := *d
	return &shared
}

// Cause is one problem that an object reports.
type Cause struct {
	ObjectRef `json:",inline"`
	// Reason is a reason of Xylem (REASONS.md) or of Kubernetes.
	Reason string `json:"reason"`
	// What describes what happened and why, in one sentence without a period.
	What string `json:"what"`
	// ToDo is the next step, or empty if unknown.
	ToDo string `json:"toDo,omitempty"`
	// Since is when the problem was first reported, if known.
	Since metav1.Time `json:"since,omitempty"`

	stage stage
	// usable means that Pods can use the claim despite the problem.
	usable bool
}

// ObjectRef identifies an object.
type ObjectRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is the registration of the member. It is empty for the host.
	Cluster string `json:"cluster,omitempty"`
}

// Evidence is an object with its state, conditions and events.
type Evidence struct {
	ObjectRef  `json:",inline"`
	State      string              `json:"state"`
	Created    *metav1.Time        `json:"created,omitempty"`
	Conditions []inspect.Condition `json:"conditions,omitempty"`
	Events     []inspect.Event     `json:"events,omitempty"`
}
