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
	"github.com/xylem-io/xylem/internal/mirror"
)

const clusterID = "3f0c"

var now = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))

func TestConditions(t *testing.T) {
	identity := member.Identity{ClusterID: clusterID, Version: "v1.36.3"}
	up := fleet.State{Connected: true, Synced: true, DestructionAllowed: true, Identity: identity}
	with := func(change func(*fleet.State)) fleet.State { s := up; change(&s); return s }
	problem := func(reason string) *access.ConnectionProblem {
		return &access.ConnectionProblem{Reason: reason, Message: "because"}
	}

	// row contains the status and reason of Connected, NodeReady, Synced and Ready.
	type row [4][2]string
	yes := func(reason string) [2]string { return [2]string{"True", reason} }
	no := func(reason string) [2]string { return [2]string{"False", reason} }
	connected, nodeReady, synced, ready := yes(v1alpha1.ReasonConnected), yes(v1alpha1.ReasonNodeReady), yes(v1alpha1.ReasonSynced), yes(v1alpha1.ReasonReady)

	nodeUp := metav1.Condition{Type: v1alpha1.ConditionNodeReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNodeReady, Message: "the member responds"}
	nodeDown := metav1.Condition{Type: v1alpha1.ConditionNodeReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeNotReady, Message: "the node does not exist yet"}

	for name, tc := range map[string]struct {
		state fleet.State
		node  metav1.Condition
		ready ReadyOverride
		want  row
	}{
		"the member is connected and ready": {up, nodeUp, ReadyOverride{}, row{connected, nodeReady, synced, ready}},
		"the first connection is in progress": {fleet.State{}, nodeDown, ReadyOverride{},
			row{no(v1alpha1.ReasonConnecting), no(v1alpha1.ReasonNodeNotReady), no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonConnecting)}},
		"the member does not respond": {fleet.State{Problem: problem(v1alpha1.ReasonUnreachable), Identity: identity}, nodeUp, ReadyOverride{},
			row{no(v1alpha1.ReasonUnreachable), nodeReady, no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonUnreachable)}},
		"another cluster responds at the member's address (I2)": {fleet.State{Problem: problem(v1alpha1.ReasonIdentityChanged)}, nodeUp, ReadyOverride{},
			row{no(v1alpha1.ReasonIdentityChanged), nodeReady, no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonIdentityChanged)}},
		"another registration owns the cluster": {fleet.State{Problem: problem(v1alpha1.ReasonDuplicateCluster)}, nodeDown, ReadyOverride{},
			row{no(v1alpha1.ReasonDuplicateCluster), no(v1alpha1.ReasonNodeNotReady), no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonDuplicateCluster)}},
		"deletions are suspended: the member stays Ready, and Connected reports the suspension (I2)": {
			with(func(s *fleet.State) { s.DestructionAllowed, s.Problem = false, problem(v1alpha1.ReasonHostRestored) }), nodeUp, ReadyOverride{},
			row{yes(v1alpha1.ReasonHostRestored), nodeReady, synced, ready}},
		"the member allows no budgets": {with(func(s *fleet.State) {
			s.BudgetsProblem = mirror.NewRefusal(v1alpha1.ReasonBudgetNotEnforced, "older role")
		}), nodeUp, ReadyOverride{}, row{connected, nodeReady, yes(v1alpha1.ReasonBudgetNotEnforced), ready}},
		"the caches are syncing": {with(func(s *fleet.State) { s.Synced = false }), nodeUp, ReadyOverride{},
			row{connected, nodeReady, no(v1alpha1.ReasonSyncing), no(v1alpha1.ReasonSyncing)}},
		"the virtual node is not ready": {up, nodeDown, ReadyOverride{},
			row{connected, no(v1alpha1.ReasonNodeNotReady), synced, no(v1alpha1.ReasonNodeNotReady)}},
		"the member is being deregistered": {up, nodeUp, ReadyOverride{v1alpha1.ReasonDraining, "3 claims are left"},
			row{connected, nodeReady, synced, no(v1alpha1.ReasonDraining)}},
		"the member is being deregistered, and does not respond": {fleet.State{Problem: problem(v1alpha1.ReasonUnreachable)}, nodeUp, ReadyOverride{v1alpha1.ReasonMemberUnreachable, "2 Pods"},
			row{no(v1alpha1.ReasonUnreachable), nodeReady, no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonMemberUnreachable)}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ConnectionAndReady(tc.state, tc.node, tc.ready)
			types := [4]string{v1alpha1.ConditionConnected, v1alpha1.ConditionNodeReady, v1alpha1.ConditionSynced, v1alpha1.ConditionReady}
			if len(got) != len(types) {
				t.Fatalf("got %d conditions, want %d", len(got), len(types))
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
