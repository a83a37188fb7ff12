package lifecycle_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
)

func releasing(o *lifecycle.Observed) {
	o.Claims[0].Volume.Annotations[v1alpha1.AnnotationReleasing] = "leaf-pv-uid"
}

func placed(in string) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) { o.Claims[0].Root.Annotations[v1alpha1.AnnotationPlacedIn] = in }
}

func noLeafClaim(o *lifecycle.Observed) { o.Claims[0].Leaf = nil }

func ended(o *lifecycle.Observed) {
	running(o)
	o.Root.Status.Phase, o.Leaf.Status.Phase = corev1.PodSucceeded, corev1.PodSucceeded
}

func TestDecidePromised(t *testing.T) {
	for name, tc := range map[string]struct {
		observed     lifecycle.Observed
		want, reason string
	}{
		"the leaf claim exists":                                                                            {promised(), "CreateLeaf", ""},
		"the leaf claim does not exist yet":                                                                {promised(noLeafClaim), "Nothing", ""},
		"the claim is not placed yet":                                                                      {promised(noLeafClaim, placed("")), "Nothing", ""},
		"the claim is placed in another member":                                                            {promised(noLeafClaim, placed(there.ClusterID)), "Nothing", v1alpha1.ReasonPlacedElsewhere},
		"the promise is not in the cache yet":                                                              {promised(func(o *lifecycle.Observed) { o.Claims[0].Volume = nil }), "Nothing", ""},
		"the claim is being deleted":                                                                       {promised(noLeafClaim, func(o *lifecycle.Observed) { o.Claims[0].Root.DeletionTimestamp = &now }), "Nothing", v1alpha1.ReasonClaimNotBound},
		"the claim is being deleted while its disk is being provisioned":                                   {promised(func(o *lifecycle.Observed) { o.Claims[0].Root.DeletionTimestamp = &now }), "CreateLeaf", ""},
		"the promise is fulfilled here":                                                                    {promised(keptIn(here)), "CreateLeaf", ""},
		"the promise is fulfilled permanently in another member":                                           {promised(keptIn(there)), "Nothing", ""},
		"the promise is fulfilled in another member, and its disk is released when unused":                 {promised(scratch, keptIn(there)), "Nothing", v1alpha1.ReasonPlacedElsewhere},
		"the promise is fulfilled here, and its disk is released when unused":                              {promised(scratch, keptIn(here)), "CreateLeaf", ""},
		"the disk is being released here":                                                                  {promised(scratch, keptIn(here), releasing), "Nothing", ""},
		"the Pod has finished, and the disk stays":                                                         {promised(scratch, keptIn(here), ended), "MarkPushed", ""},
		"the Pod has finished, and the disk is being released: its leaf is removed":                        {promised(scratch, keptIn(here), ended, releasing), "RemoveLeaf", ""},
		"the Pod runs while the disk is being released: its leaf stays":                                    {promised(scratch, keptIn(here), running, releasing), "MarkPushed", ""},
		"an unbound Pod is the consumer of another claim":                                                  {promised(early), "CreateLeaf", ""},
		"an unbound Pod is the consumer of another claim, and the promise's leaf claim does not exist yet": {promised(early, noLeafClaim), "Nothing", ""},
		"the claim reports why it has no leaf claim":                                                       {promised(noLeafClaim, claimSays), "RepeatProblem", lacksClass},
		"the claim reports why it has no leaf claim, but is not placed here":                               {promised(noLeafClaim, claimSays, placed("")), "Nothing", ""},
		"the claim reports a problem, but the leaf claim exists":                                           {promised(claimSays), "CreateLeaf", ""},
		"the problem that the Pod reports is resolved":                                                     {promised(noLeafClaim, podSays(v1alpha1.ReasonPlacedElsewhere)), "MarkAwaiting", ""},
		"the Pod already reports that it waits for the volume (I5)":                                        {promised(noLeafClaim, podSays(v1alpha1.ReasonVolumeAwaited)), "Nothing", ""},
		"the claim reports why it has no leaf claim, but an early leaf Pod exists: it stays":               {promised(early, running, noLeafClaim, claimSays), "MarkPushed", ""},
		"the promise is fulfilled in another member, and its PV has policy Retain":                         {promised(scratch, keptIn(there), retained), "Nothing", v1alpha1.ReasonVolumeUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			d := lifecycle.NextDecision(tc.observed)
			reason := ""
			switch d := d.(type) {
			case lifecycle.Nothing:
				if d.Problem != nil {
					reason = d.Problem.Reason
				}
			case lifecycle.RepeatProblem:
				reason = d.Problem.Reason
			}
			if got := fmt.Sprintf("%T", d)[len("lifecycle."):]; got != tc.want || reason != tc.reason {
				t.Errorf("decision is %s %s, want %s %s", got, reason, tc.want, tc.reason)
			}
		})
	}
}

const lacksClass = "MemberClassNotFound"

// claimSays sets the condition in which root_pvc reports why it cannot create the leaf claim.
func claimSays(o *lifecycle.Observed) {
	o.Claims[0].Root.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
		Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: lacksClass, Message: "member cluster38 has no StorageClass",
	}}
}

// podSays sets an earlier problem on the root.
func podSays(reason string) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) {
		o.Root.Status.Conditions = append(o.Root.Status.Conditions, corev1.PodCondition{Type: v1alpha1.PodPushed, Status: corev1.ConditionFalse, Reason: reason})
	}
}

func retained(o *lifecycle.Observed) {
	o.Claims[0].Volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// TestClaimsProblemOnPod checks that the Pod repeats the problem that a member has with its claim,
// and names the claim.
func TestClaimsProblemOnPod(t *testing.T) {
	d, ok := lifecycle.NextDecision(promised(noLeafClaim, claimSays)).(lifecycle.RepeatProblem)
	if !ok || d.Claim != "data" {
		t.Fatalf("got %#v, want the claim's problem", d)
	}
	if want := "claim \"data\": member cluster38 has no StorageClass"; d.Problem.Message != want {
		t.Errorf("message is %q, want %q", d.Problem.Message, want)
	}
}

// early makes the Pod unbound but nominated, and adds a claim that waits for it as its consumer.
func early(o *lifecycle.Observed) {
	o.Root.Spec.NodeName, o.Root.Status.NominatedNodeName = "", here.NodeName
	o.Claims = append(o.Claims, asked("other", here))
}
