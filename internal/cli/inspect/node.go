package inspect

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// APIVersion and Kind identify the object that -o json and -o yaml print. Within a version, fields
// are added but never renamed or removed.
const (
	APIVersion = "cli.xylem.io/v1alpha1"
	TreeKind   = "Tree"
)

// Tree is a claim or a Pod in the host with all objects that belong to it.
type Tree struct {
	metav1.TypeMeta `json:",inline"`
	// Root is the requested object.
	Root Node `json:"root"`
	// Missing lists what could not be read.
	Missing []Missing `json:"missing,omitempty"`
	// Recorded are the members that were not read. The tree shows the host's records of their objects.
	Recorded []string `json:"recorded,omitempty"`
}

// DeepCopyObject makes a Tree a runtime.Object for kubectl's printers. A Tree never changes, so
// copies may share their contents.
func (t *Tree) DeepCopyObject() runtime.Object {
	shared := *t
	return &shared
}

// Node is one object, with the objects that it leads to.
type Node struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is the registration of the member. It is empty for the host.
	Cluster string `json:"cluster,omitempty"`
	// State is a phase, or one of the State constants.
	State string `json:"state"`
	// Health summarizes the state.
	Health Health `json:"health"`
	// Created is when the object was created. It is absent if unknown.
	Created *metav1.Time `json:"created,omitempty"`
	// Details are facts about the object, the most important first.
	Details []string `json:"details,omitempty"`
	// Driver and Handle identify the real volume.
	Driver string `json:"driver,omitempty"`
	Handle string `json:"handle,omitempty"`
	// Conditions are the relevant conditions.
	Conditions []Condition `json:"conditions,omitempty"`
	// Events are the relevant events, the latest last.
	Events   []Event `json:"events,omitempty"`
	Children []Node  `json:"children,omitempty"`
}

// Health is the health of an object.
type Health string

// Values of Health.
const (
	Good    Health = "Good"
	Waiting Health = "Waiting"
	Bad     Health = "Bad"
	Unknown Health = "Unknown"
)

// States that are not Kubernetes phases.
const (
	// StateRecorded means that the object was not read, but the host has recorded it.
	StateRecorded = "Recorded"
	// StateNotRead means that it is unknown whether the object exists.
	StateNotRead = "NotRead"
	// StateNotFound means that the object does not exist.
	StateNotFound = "NotFound"
	// StateForeign means that an object with this name exists, but Xylem did not create it.
	StateForeign = "Foreign"
	// StateTerminating means that the object is being deleted.
	StateTerminating = "Terminating"
	// StateOrphaned means that the volume has no root.
	StateOrphaned = "Orphaned"
)

// Condition is a condition of an object.
type Condition struct {
	Type    string      `json:"type"`
	Status  string      `json:"status"`
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message,omitempty"`
	Since   metav1.Time `json:"since,omitempty"`
}

// ConditionOf returns a condition with sanitized text.
func ConditionOf(kind, status, reason, message string, since metav1.Time) Condition {
	return Condition{Type: kind, Status: status, Reason: Plain(reason), Message: Plain(message), Since: since}
}

// Event is an event about an object.
type Event struct {
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Message string      `json:"message,omitempty"`
	Count   int         `json:"count"`
	Last    metav1.Time `json:"last"`
}

// Missing is something that could not be read.
type Missing struct {
	// What is the object or kind that could not be read, such as "PersistentVolume pvc-1".
	What string `json:"what"`
	// Cluster is the registration of the member. It is empty for the host.
	Cluster string `json:"cluster,omitempty"`
	// Why is the error, usually the API server's message.
	Why string `json:"why"`
}
