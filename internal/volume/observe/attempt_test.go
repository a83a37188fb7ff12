package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

// A Pod's problem is also its claim's problem, unless another claim of the Pod causes it.
func TestOfThisClaim(t *testing.T) {
	leaf := func(mode storagev1.VolumeBindingMode, change ...func(*corev1.PersistentVolumeClaim)) classedClaim {
		claim := &corev1.PersistentVolumeClaim{}
		for _, c := range change {
			c(claim)
		}
		return classedClaim{claim, &storagev1.StorageClass{VolumeBindingMode: &mode}}
	}
	isBound := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" }
	hasNode := func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{route.AnnSelectedNode: "n1"}
	}
	refused := &mirror.Refusal{Reason: v1alpha1.ReasonPodRefused, Message: "quota"}
	const immediate, late = storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	unschedulable := &mirror.Refusal{Reason: v1alpha1.ReasonPodUnschedulable, Message: "member cluster38 has no node for Pod web: no"}
	for name, tc := range map[string]struct {
		problem *mirror.Refusal
		others  []classedClaim
		want    *mirror.Refusal
	}{
		"the Pod has no problem":                           {nil, []classedClaim{leaf(late)}, nil},
		"the Pod has no other claim":                       {unschedulable, nil, unschedulable},
		"the other claim is not in the member":             {unschedulable, []classedClaim{{}}, unschedulable},
		"the other claim also waits for a node":            {unschedulable, []classedClaim{leaf(late)}, unschedulable},
		"the other claim is being provisioned immediately": {unschedulable, []classedClaim{leaf(late), leaf(immediate)}, nil},
		"the other claim is being provisioned on its node": {unschedulable, []classedClaim{leaf(late, hasNode)}, nil},
		"the other claim's class does not exist":           {unschedulable, []classedClaim{{claim: leaf(late).claim}}, nil},
		"the other claim is bound":                         {unschedulable, []classedClaim{leaf(immediate, isBound)}, unschedulable},
		"the member rejects the Pod":                       {refused, []classedClaim{leaf(immediate)}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problemOfThisClaim(tc.problem, tc.others)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
