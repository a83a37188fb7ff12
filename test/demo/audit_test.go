package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	link "github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/test/controlplane"
)

func TestBreakdown(t *testing.T) {
	tests := map[string]struct {
		requests controlplane.Requests
		want     string
	}{
		"nothing": {nil, "none"},
		"reads and Leases are omitted": {controlplane.Requests{
			{Verb: "get", Resource: "pods", Code: 200}, {Verb: "patch", Resource: "leases", Code: 200}, {Verb: "watch", Resource: "pods", Code: 200},
		}, "none"},
		"most frequent first": {controlplane.Requests{
			{Verb: "create", Resource: "persistentvolumes", Code: 201},
			{Verb: "patch", Resource: "pods/status", Code: 200}, {Verb: "patch", Resource: "pods/status", Code: 200},
		}, "2 patch pods/status, 1 create pv"},
		"failed writes are counted separately": {controlplane.Requests{
			{Verb: "patch", Resource: "persistentvolumeclaims/status", Code: 409}, {Verb: "patch", Resource: "persistentvolumeclaims/status", Code: 200},
		}, "1 patch pvc/status, 1 patch pvc/status (status 409)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, breakdown(test.requests)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	got := refusals(controlplane.Requests{
		{Verb: "list", Group: "storage.k8s.io", Resource: "csidrivers", Code: 403},
		{Verb: "list", Group: "storage.k8s.io", Resource: "csidrivers", Code: 403},
		{Verb: "get", Resource: "secrets", Namespace: "a", Name: "b", Code: 403},
		{Verb: "get", Resource: "secrets", Namespace: "a", Name: "c", Code: 404},
		{Verb: "create", Resource: "namespaces", Name: link.PolicyProbeName, Code: 403},
	})
	want := []string{"403 for get secrets a/b", "403 for list csidrivers.storage.k8s.io /"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
