package clusterregistration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
)

const clusterID = "3f0c"

var now = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))

func TestConditions(t *testing.T) {
	identity := member.Identity{ClusterID: clusterID, Version: "v1.36.3"}
	up := fleet.State{Connected: true, Synced: true, MayDestroy: true, Identity: identity}
	with := func(change func(*fleet.State)) fleet.State { s := up; change(&s); return s }
	problem := func(reason string) *access.Problem { return &access.Problem{Reason: reason, Message: "because"} }

	// The status and reason of Connected, NodeReady, Synced and Ready.
	type row [4][2]string
	yes := func(reason string) [2]string { return [2]string{"True", reason} }
	no := func(reason string) [2]string { return [2]string{"False", reason} }
	connected, nodeReady, synced, ready := yes(v1alpha1.ReasonConnected), yes(v1alpha1.ReasonNodeReady), yes(v1alpha1.ReasonSynced), yes(v1alpha1.ReasonReady)

	nodeUp := metav1.Condition{Type: v1alpha1.ConditionNodeReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNodeReady, Message: "it answers"}
	nodeDown := metav1.Condition{Type: v1alpha1.ConditionNodeReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeNotReady, Message: "it does not exist yet"}

	for name, tc := range map[string]struct {
		state fleet.State
		node  metav1.Condition
		ready readiness
		want  row
	}{
		"all is well": {up, nodeUp, readiness{}, row{connected, nodeReady, synced, ready}},
		"the first connection is in progress": {fleet.State{}, nodeDown, readiness{},
			row{no(v1alpha1.ReasonConnecting), no(v1alpha1.ReasonNodeNotReady), no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonConnecting)}},
		"the member does not respond": {fleet.State{Problem: problem(v1alpha1.ReasonUnreachable), Identity: identity}, nodeUp, readiness{},
			row{no(v1alpha1.ReasonUnreachable), nodeReady, no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonUnreachable)}},
		"another cluster responds (I2)": {fleet.State{Problem: problem(v1alpha1.ReasonIdentityChanged)}, nodeUp, readiness{},
			row{no(v1alpha1.ReasonIdentityChanged), nodeReady, no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonIdentityChanged)}},
		"an older registration has the cluster": {fleet.State{Problem: problem(v1alpha1.ReasonDuplicateCluster)}, nodeDown, readiness{},
			row{no(v1alpha1.ReasonDuplicateCluster), no(v1alpha1.ReasonNodeNotReady), no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonDuplicateCluster)}},
		"connected, and deletions are suspended: it stays Ready and reports that (I2)": {
			with(func(s *fleet.State) { s.MayDestroy, s.Problem = false, problem(v1alpha1.ReasonHostRestored) }), nodeUp, readiness{},
			row{yes(v1alpha1.ReasonHostRestored), nodeReady, synced, ready}},
		"the caches are syncing": {with(func(s *fleet.State) { s.Synced = false }), nodeUp, readiness{},
			row{connected, nodeReady, no(v1alpha1.ReasonSyncing), no(v1alpha1.ReasonSyncing)}},
		"the node is not ready": {up, nodeDown, readiness{},
			row{connected, no(v1alpha1.ReasonNodeNotReady), synced, no(v1alpha1.ReasonNodeNotReady)}},
		"it is being deregistered": {up, nodeUp, readiness{v1alpha1.ReasonDraining, "3 claims are left"},
			row{connected, nodeReady, synced, no(v1alpha1.ReasonDraining)}},
		"it is being deregistered, and away": {fleet.State{Problem: problem(v1alpha1.ReasonUnreachable)}, nodeUp, readiness{v1alpha1.ReasonMemberUnreachable, "2 Pods"},
			row{no(v1alpha1.ReasonUnreachable), nodeReady, no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonMemberUnreachable)}},
	} {
		t.Run(name, func(t *testing.T) {
			got := conditions(tc.state, tc.node, tc.ready)
			types := [4]string{v1alpha1.ConditionConnected, v1alpha1.ConditionNodeReady, v1alpha1.ConditionSynced, v1alpha1.ConditionReady}
			if len(got) != len(types) {
				t.Fatalf("%d conditions, want %d", len(got), len(types))
			}
			var has row
			for i, c := range got {
				if c.Type != types[i] {
					t.Errorf("condition %d is %s, want %s", i, c.Type, types[i])
				}
				if c.Message == "" {
					t.Errorf("%s has no message", c.Type)
				}
				has[i] = [2]string{string(c.Status), c.Reason}
			}
			if diff := cmp.Diff(tc.want, has); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOlder(t *testing.T) {
	made := func(name string, at time.Time) *v1alpha1.ClusterRegistration {
		return &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at)}}
	}
	for name, tc := range map[string]struct {
		a, b *v1alpha1.ClusterRegistration
		want bool
	}{
		"created before":                               {made("b", now.Time), made("a", now.Add(time.Second)), true},
		"created after":                                {made("a", now.Add(time.Second)), made("b", now.Time), false},
		"created in the same second: by name":          {made("a", now.Time), made("b", now.Time), true},
		"created in the same second, in reverse order": {made("b", now.Time), made("a", now.Time), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := older(tc.a, tc.b); got != tc.want {
				t.Errorf("older is %v", got)
			}
		})
	}
}
