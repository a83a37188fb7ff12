package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// APIVersion and Kind of the object that -o json and yaml print. Within a version, fields are
// added but never renamed or removed.
const (
	APIVersion = "cli.xylem.io/v1alpha1"
	Kind       = "Tree"
)

// Tree is a claim or a Pod of the host with all objects that belong to it.
type Tree struct {
	metav1.TypeMeta `json:",inline"`
	// Root is the requested object.
	Root Node `json:"root"`
	// Missing lists what could not be read.
	Missing []Missing `json:"missing,omitempty"`
	// Recorded are the members whose objects are shown as the host recorded them, because they
	// were not read.
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
	// State in a word or two: a phase, or one of the State constants.
	State string `json:"state"`
	// Health sums up the state.
	Health Health `json:"health"`
	// Created is when the object was created. It is absent if unknown.
	Created *metav1.Time `json:"created,omitempty"`
	// Details are facts, the most important first.
	Details []string `json:"details,omitempty"`
	// Driver and Handle of the real volume.
	Driver string `json:"driver,omitempty"`
	Handle string `json:"handle,omitempty"`
	// Conditions that are relevant.
	Conditions []Condition `json:"conditions,omitempty"`
	// Events that are relevant, the latest last.
	Events   []Event `json:"events,omitempty"`
	Children []Node  `json:"children,omitempty"`
}

// Health of an object.
type Health string

// Values of Health.
const (
	Good    Health = "Good"
	Waiting Health = "Waiting"
	Bad     Health = "Bad"
	Unknown Health = "Unknown"
)

// States that are not phases of Kubernetes.
const (
	// StateRecorded: the object was not read; the host has recorded it.
	StateRecorded = "Recorded"
	// StateNotRead: it is unknown whether the object exists.
	StateNotRead = "NotRead"
	// StateNotFound: the object does not exist.
	StateNotFound = "NotFound"
	// StateForeign: an object of that name exists, but Xylem did not create it.
	StateForeign = "Foreign"
	// StateTerminating: the object is being deleted.
	StateTerminating = "Terminating"
	// StateOrphaned: a volume without a root.
	StateOrphaned = "Orphaned"
)

// Condition of an object.
type Condition struct {
	Type    string      `json:"type"`
	Status  string      `json:"status"`
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message,omitempty"`
	Since   metav1.Time `json:"since,omitempty"`
}

// Event about an object.
type Event struct {
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Message string      `json:"message,omitempty"`
	Count   int         `json:"count"`
	Last    metav1.Time `json:"last"`
}

// Missing is something that could not be read.
type Missing struct {
	// What could not be read, such as "PersistentVolume pvc-1".
	What string `json:"what"`
	// Cluster is the registration of the member. It is empty for the host.
	Cluster string `json:"cluster,omitempty"`
	// Why is the API server's message.
	Why string `json:"why"`
}
