package rootpod

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// promised is a Pod that is bound here, whose claim is bound to a promise, placed
// here, with a leaf claim that waits.
func promised(change ...func(*observed)) observed {
	return seen(append([]func(*observed){func(o *observed) {
		o.root.Spec.NodeName, o.root.Status.NominatedNodeName = here.NodeName, ""
		c := &o.claims[0]
		c.volume = hostpv.WithMember(hostpv.PromiseFor(c.root, &storagev1.StorageClass{Parameters: map[string]string{}}), here, o.root)
		c.root.Spec.VolumeName = c.volume.Name
	}}, change...)...)
}

func keptIn(m mirror.Member) func(*observed) {
	return func(o *observed) {
		leaf := &corev1.PersistentVolume{}
		leaf.Name, leaf.UID = "pv-1", "leaf-pv-uid"
		o.claims[0].volume = hostpv.Fulfil(hostpv.WithMember(o.claims[0].volume, m, nil), leaf, corev1.PersistentVolumeReclaimDelete, m)
	}
}

// scratch: the disk goes with its last Pod; before it is kept.
func scratch(o *observed) {
	class := hostpv.PromiseClass(o.claims[0].volume)
	class.Parameters[v1alpha1.ParameterRelease] = v1alpha1.ReleaseWhenUnused
	o.claims[0].volume = hostpv.PromiseFor(o.claims[0].root, class)
}

func releasing(o *observed) {
	o.claims[0].volume.Annotations[v1alpha1.AnnotationReleasing] = "leaf-pv-uid"
}

func placed(in string) func(*observed) {
	return func(o *observed) { o.claims[0].root.Annotations[v1alpha1.AnnotationPlacedIn] = in }
}

func noLeafClaim(o *observed) { o.claims[0].leaf = nil }

func ended(o *observed) {
	running(o)
	o.root.Status.Phase, o.leaf.Status.Phase = corev1.PodSucceeded, corev1.PodSucceeded
}

func TestDecidePromised(t *testing.T) {
	for name, tc := range map[string]struct {
		observed     observed
		want, reason string
	}{
		"the leaf claim is there":                    {promised(), "create", ""},
		"the leaf claim is not there yet":            {promised(noLeafClaim), "nothing", ""},
		"not placed yet":                             {promised(noLeafClaim, placed("")), "nothing", ""},
		"placed elsewhere":                           {promised(noLeafClaim, placed(there.ClusterID)), "nothing", v1alpha1.ReasonPlacedElsewhere},
		"the promise is not seen yet":                {promised(func(o *observed) { o.claims[0].volume = nil }), "nothing", ""},
		"the claim is being deleted":                 {promised(noLeafClaim, func(o *observed) { o.claims[0].root.DeletionTimestamp = &now }), "nothing", v1alpha1.ReasonClaimNotBound},
		"being deleted, the disk is being made":      {promised(func(o *observed) { o.claims[0].root.DeletionTimestamp = &now }), "create", ""},
		"fulfilled here":                             {promised(keptIn(here)), "create", ""},
		"fulfilled elsewhere, for good":              {promised(keptIn(there)), "nothing", ""},
		"fulfilled elsewhere, until it is unused":    {promised(scratch, keptIn(there)), "nothing", v1alpha1.ReasonPlacedElsewhere},
		"fulfilled here, until it is unused":         {promised(scratch, keptIn(here)), "create", ""},
		"being released here":                        {promised(scratch, keptIn(here), releasing), "nothing", ""},
		"it has ended, the disk stays":               {promised(scratch, keptIn(here), ended), "markPushed", ""},
		"it has ended, the disk goes":                {promised(scratch, keptIn(here), ended, releasing), "remove", ""},
		"it runs, the disk goes: not its leaf Pod":   {promised(scratch, keptIn(here), running, releasing), "markPushed", ""},
		"early, beside a claim that waits for it":    {promised(early), "create", ""},
		"early, the promise's leaf claim is to come": {promised(early, noLeafClaim), "nothing", ""},
		"the claim says why it cannot be made":       {promised(noLeafClaim, claimSays), "repeat", lacksClass},
		"the same, of before it was placed here":     {promised(noLeafClaim, claimSays, placed("")), "nothing", ""},
		"it is made, for a Pod that it waits for":    {promised(claimSays), "create", ""},
		"what was said is over":                      {promised(noLeafClaim, podSays(v1alpha1.ReasonPlacedElsewhere)), "markAwaiting", ""},
		"what was said is taken back":                {promised(noLeafClaim, podSays(v1alpha1.ReasonVolumeAwaited)), "nothing", ""},
		"early, and the claim says why: it stays":    {promised(early, running, noLeafClaim, claimSays), "markPushed", ""},
		"fulfilled elsewhere, and retained there":    {promised(scratch, keptIn(there), retained), "nothing", v1alpha1.ReasonVolumeUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(tc.observed)
			reason := ""
			switch d := d.(type) {
			case nothing:
				if d.problem != nil {
					reason = d.problem.Reason
				}
			case repeat:
				reason = d.problem.Reason
			}
			if got := fmt.Sprintf("%T", d)[len("rootpod."):]; got != tc.want || reason != tc.reason {
				t.Errorf("decision is %s %s, want %s %s", got, reason, tc.want, tc.reason)
			}
		})
	}
}

// A Pod is pushed to a disk that goes with its last Pod only while nothing of a
// release stands on the promise, by a live read.
func TestSettled(t *testing.T) {
	down := errors.New("connection refused")
	annotated := func(key, value string) func(*reads) {
		return func(r *reads) { r.volume.Annotations[key] = value }
	}
	for name, tc := range map[string]struct {
		change func(*reads)
		want   error
	}{
		"in use":                       {func(*reads) {}, errWrite},
		"being released":               {annotated(v1alpha1.AnnotationReleasing, "leaf-pv-uid"), nil},
		"another disk was released":    {annotated(v1alpha1.AnnotationReleasing, "earlier-uid"), errWrite},
		"unused so far":                {annotated(v1alpha1.AnnotationUnusedSince, "2026-11-20T12:00:00Z"), nil},
		"unused since what is no time": {annotated(v1alpha1.AnnotationUnusedSince, ""), nil},
		"without a disk by now":        {func(r *reads) { r.volume = hostpv.WithoutMember(r.volume) }, nil},
		"in another member by now":     {func(r *reads) { r.volume.Labels[v1alpha1.LabelClusterID] = there.ClusterID }, nil},
		"made anew":                    {func(r *reads) { r.volume.UID = "newer" }, nil},
		"gone":                         {func(r *reads) { r.volume = nil }, nil},
		"not known: no answer":         {func(r *reads) { r.err = down }, down},
	} {
		t.Run(name, func(t *testing.T) {
			o := promised(scratch, keptIn(here))
			live := &reads{pod: o.root.DeepCopy(), volume: o.claims[0].volume.DeepCopy()}
			tc.change(live)
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: live, Leaf: guarded.NewLeaf(writes{}, here.HostID, here.Registration, guarded.HostOnly{}),
			}}
			if err := r.act(t.Context(), o, decide(o)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

const lacksClass = "MemberClassNotFound"

// claimSays: root_pvc says on the claim why its counterpart cannot be made.
func claimSays(o *observed) {
	o.claims[0].root.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
		Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: lacksClass, Message: "member cluster38 has no StorageClass",
	}}
}

// podSays: the root was told of a problem before.
func podSays(reason string) func(*observed) {
	return func(o *observed) {
		o.root.Status.Conditions = append(o.root.Status.Conditions, corev1.PodCondition{Type: v1alpha1.PodPushed, Status: corev1.ConditionFalse, Reason: reason})
	}
}

func retained(o *observed) {
	o.claims[0].volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// TestClaimsProblemOnPod: what a member has against a claim is repeated on the Pod, and is
// not taken for something against the Pod.
func TestClaimsProblemOnPod(t *testing.T) {
	d, ok := decide(promised(noLeafClaim, claimSays)).(repeat)
	if !ok || d.claim != "data" {
		t.Fatalf("got %#v, want the claim's problem", d)
	}
	if want := "claim \"data\": member cluster38 has no StorageClass"; d.problem.Message != want {
		t.Errorf("message is %q, want %q", d.problem.Message, want)
	}
}

// early: the Pod is about to be bound here, and has another claim that waits for it.
func early(o *observed) {
	o.root.Spec.NodeName, o.root.Status.NominatedNodeName = "", here.NodeName
	o.claims = append(o.claims, asked("other", here))
}
