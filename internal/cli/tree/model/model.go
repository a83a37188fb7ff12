package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// APIVersion and Kind of what -o json and yaml print. Fields are added, and never
// renamed or removed, within a version.
const (
	APIVersion = "cli.xylem.io/v1alpha1"
	Kind       = "Tree"
)

// Tree is a claim or a Pod of the host with all that belongs to it.
type Tree struct {
	metav1.TypeMeta `json:",inline"`
	// Root is the object that was requested.
	Root Node `json:"root"`
	// Missing is what could not be read.
	Missing []Missing `json:"missing,omitempty"`
	// Recorded are the members whose objects are shown as the host recorded them,
	// since they were not read themselves.
	Recorded []string `json:"recorded,omitempty"`
}

// DeepCopyObject makes a Tree a runtime.Object, for kubectl's printers. Nothing
// changes a tree, so that its copies may share what they have.
func (t *Tree) DeepCopyObject() runtime.Object {
	shared := *t
	return &shared
}

// Node is one object, and those that it leads to.
type Node struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is empty for the host, else the registration of the member.
	Cluster string `json:"cluster,omitempty"`
	// State in a word or two: a phase, or one of the State constants.
	State string `json:"state"`
	// Health sums up what that means.
	Health Health `json:"health"`
	// Created is when the object was created; absent if it is not known.
	Created *metav1.Time `json:"created,omitempty"`
	// Details are facts in the order of their weight.
	Details []string `json:"details,omitempty"`
	// Driver and Handle are those of the real volume.
	Driver string `json:"driver,omitempty"`
	Handle string `json:"handle,omitempty"`
	// Conditions that matter.
	Conditions []Condition `json:"conditions,omitempty"`
	// Events that matter, the latest last.
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

// States that are no phases of Kubernetes.
const (
	// StateRecorded: the object was not read; the host has recorded it.
	StateRecorded = "Recorded"
	// StateNotRead: whether there is one is not known.
	StateNotRead = "NotRead"
	// StateNotFound: it is not there.
	StateNotFound = "NotFound"
	// StateForeign: an object of that name is there, and is not Xylem's.
	StateForeign = "Foreign"
	// StateTerminating: it is being deleted.
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
	// What, such as "PersistentVolume pvc-1".
	What string `json:"what"`
	// Cluster is empty for the host.
	Cluster string `json:"cluster,omitempty"`
	// Why, in the API server's words.
	Why string `json:"why"`
}
