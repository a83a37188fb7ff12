package rootpvc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// promised returns a claim that is bound to a promise and not placed yet.
func promised(change ...func(*scene)) observe.Claim { return promisedScene(change...).observe() }

func promisedScene(change ...func(*scene)) scene {
	return sceneOf(append([]func(*scene){func(o *scene) {
		o.root.Annotations = map[string]string{}
		o.class.Parameters = map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterMemberClass: "slow"}
		o.promise = hostpv.NewPromiseFor(o.root, o.class)
		o.promise.Status.Phase = corev1.VolumeBound
		o.root.Spec.VolumeName = o.promise.Name
		o.class = hostpv.ClassOfPromise(o.promise)
	}}, change...)...)
}

// withPods binds these Pods to the member's node, in this order.
func withPods(names ...string) func(*scene) {
	return func(o *scene) {
		for i, name := range names {
			o.podsHere = append(o.podsHere, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(now.Add(time.Duration(i) * time.Second))}})
		}
	}
}

func labelled(id string) func(*scene) {
	return func(o *scene) { o.promise.Labels = map[string]string{v1alpha1.LabelClusterID: id} }
}

// letGo means that an admin released the promise from this member.
func letGo(o *scene) { o.promise = hostpv.ReleasePromise(o.promise, o.root, here.ClusterID) }

func leafVolumeDeleted(o *scene) { o.leafVolume.DeletionTimestamp = &now }

func rootDeleting(o *scene) { o.root.DeletionTimestamp = &now }

func TestDecidePromised(t *testing.T) {
	words := &mirror.Refusal{Reason: v1alpha1.ReasonProvisioningFailed, Message: "no space left"}
	for name, tc := range map[string]struct {
		observed observe.Claim
		want     string
		reason   string
	}{
		"no Pod uses the claim":                                                       {observed: promised(), want: "nothing"},
		"a Pod is bound to the node":                                                  {observed: promised(withPods("a")), want: "place"},
		"a Pod is bound to the node, and the claim is placed":                         {observed: promised(withPods("a"), placedIn(here.ClusterID)), want: "label shop/a/"},
		"several Pods are bound to the node, and the claim is placed":                 {observed: promised(withPods("b", "a"), placedIn(here.ClusterID)), want: "label shop/b/"},
		"a Pod is bound to the node, the claim is placed, and the promise is labeled": {observed: promised(withPods("a"), placedIn(here.ClusterID), labelled(here.ClusterID)), want: "create slow"},
		"the member lacks the class":                                                  {observed: promised(withPods("a"), placedIn(here.ClusterID), labelled(here.ClusterID), func(o *scene) { o.memberClasses = nil }), want: "nothing", reason: v1alpha1.ReasonClassNotFound},
		"the class excludes the member": {observed: promised(withPods("a"), placedIn(here.ClusterID), labelled(here.ClusterID), func(o *scene) {
			o.class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: v1alpha1.LabelClusterID, Values: []string{elsewhereID}},
			}}}
		}), want: "nothing", reason: v1alpha1.ReasonClassKeepsOff},
		"the leaf claim is pending":                                          {observed: promised(withPods("a"), placedIn(here.ClusterID), labelled(here.ClusterID), pushed), want: "nothing"},
		"the leaf claim is pending, and the member reports why":              {observed: promised(withPods("a"), placedIn(here.ClusterID), labelled(here.ClusterID), pushed, func(o *scene) { o.attempt.ProvisioningProblem = words }), want: "nothing", reason: v1alpha1.ReasonProvisioningFailed},
		"the volume is being deleted before it is bound":                     {observed: promised(withPods("a"), placedIn(here.ClusterID), labelled(here.ClusterID), pushed, leafMade, leafVolumeDeleted), want: "nothing", reason: v1alpha1.ReasonVolumeTerminating},
		"the leaf claim is bound":                                            {observed: promised(withPods("a"), placedIn(here.ClusterID), labelled(here.ClusterID), leafBound), want: "nothing"},
		"the bound volume is being deleted":                                  {observed: promised(withPods("a"), placedIn(here.ClusterID), labelled(here.ClusterID), leafBound, leafVolumeDeleted), want: "nothing", reason: v1alpha1.ReasonVolumeTerminating},
		"the bound volume is being deleted, and the Pod was deleted":         {observed: promised(placedIn(here.ClusterID), labelled(here.ClusterID), leafBound, leafVolumeDeleted), want: "nothing", reason: v1alpha1.ReasonVolumeTerminating},
		"the leaf claim is bound, and the Pod is gone":                       {observed: promised(placedIn(here.ClusterID), labelled(here.ClusterID), leafBound), want: "nothing"},
		"the leaf claim is pending, and the Pod is gone":                     {observed: promised(placedIn(here.ClusterID), labelled(here.ClusterID), pushed), want: "withdraw"},
		"the Pod is gone, and the member has no objects":                     {observed: promised(placedIn(here.ClusterID), labelled(here.ClusterID)), want: "unlabel"},
		"the Pod is gone, and the promise is not labeled":                    {observed: promised(placedIn(here.ClusterID)), want: "unplace"},
		"the promise is labeled, but the claim is not placed":                {observed: promised(labelled(here.ClusterID)), want: "unlabel"},
		"the host was restored to a state before the claim was placed":       {observed: promised(leafBound, hostRestored(time.Minute)), want: "place"},
		"never placed, and a bound leaf claim is here":                       {observed: promised(leafBound), want: "doubt", reason: v1alpha1.ReasonAdoptionUnconfirmed},
		"never placed, and an unbound leaf claim is here":                    {observed: promised(pushed), want: "withdraw"},
		"abandoned by an admin":                                              {observed: promised(leafBound, letGo), want: "nothing", reason: v1alpha1.ReasonSurplusVolume},
		"abandoned, and still placed here":                                   {observed: promised(placedIn(here.ClusterID), leafBound, letGo), want: "unplace"},
		"abandoned, and the leaf claim is unbound":                           {observed: promised(pushed, letGo), want: "withdraw"},
		"abandoned, and a Pod is bound here again":                           {observed: promised(withPods("a"), leafBound, letGo), want: "place"},
		"the host was restored to a state before the promise was labeled":    {observed: promised(placedIn(here.ClusterID), leafBound), want: "label "},
		"placed elsewhere":                                                   {observed: promised(withPods("a"), placedIn(elsewhereID)), want: "nothing", reason: v1alpha1.ReasonPlacedElsewhere},
		"placed elsewhere, and no Pod is here":                               {observed: promised(placedIn(elsewhereID)), want: "nothing"},
		"placed elsewhere, and a leaf claim is here":                         {observed: promised(withPods("a"), placedIn(elsewhereID), pushed), want: "withdraw"},
		"placed elsewhere, but the promise is labeled for this member":       {observed: promised(placedIn(elsewhereID), labelled(here.ClusterID)), want: "unlabel"},
		"placed here, but the promise is still labeled for the other member": {observed: promised(withPods("a"), placedIn(here.ClusterID), labelled(elsewhereID)), want: "nothing"},
		"the claim is being deleted":                                         {observed: promised(withPods("a"), rootDeleting), want: "nothing"},
		"the claim is being deleted: nothing more is created":                {observed: promised(withPods("a"), placedIn(here.ClusterID), labelled(here.ClusterID), rootDeleting), want: "unlabel"},
		"the claim is being deleted while the disk is being provisioned":     {observed: promised(withPods("a"), placedIn(here.ClusterID), labelled(here.ClusterID), rootDeleting, pushed), want: "nothing"},
		"a selected node has no effect":                                      {observed: promised(func(o *scene) { set(o.root, route.AnnSelectedNode, here.NodeName) }), want: "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			got, reason := named(tc.observed)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if reason != tc.reason {
				t.Errorf("reason is %q, want %q", reason, tc.reason)
			}
		})
	}
}

// named returns a short name for the decision, and the reason of the reported problem.
func named(o observe.Claim) (what, reason string) {
	d := decided(o)
	switch {
	case d.owner != "":
		return fmt.Sprintf("%s: %s", d.owner, d.step), ""
	case d.live:
		return "doubt", d.reason
	case d.step == lifecycle.None:
		return "nothing", d.reason
	case d.step == lifecycle.Label:
		if pod := o.Observed.FirstPromisePod(); pod != nil {
			return "label " + hostpv.ConsumerRecordOf(pod), ""
		}
		return "label ", ""
	case d.step == lifecycle.CreateClaim:
		leaf, refusal := volume.LeafClaim(o.Observed)
		if refusal != nil {
			panic(refusal)
		}
		return "create " + ptr.Deref(leaf.Spec.StorageClassName, "") + leaf.Spec.VolumeName, ""
	}
	return strings.ToLower(string(d.step[:1])) + string(d.step[1:]), d.reason
}

// A promise's claim is gone, and the member still has its leaf claim.
func TestDecidePromiseWithoutRoot(t *testing.T) {
	rootGone := func(o *scene) { o.root, o.promise = nil, nil }
	toFulfil := func(o *scene) {
		o.hosts = []corev1.PersistentVolume{*hostpv.PromiseWithMember(o.promise, here, nil)}
	}
	for name, tc := range map[string]struct {
		observed observe.Claim
		want     string
	}{
		"the leaf claim is pending":                            {observed: promised(pushed, toFulfil, rootGone), want: "withdraw"},
		"the leaf volume has no stamp":                         {observed: promised(leafBound, toFulfil, rootGone), want: "destroyUnmirrored"},
		"the leaf volume has a stamp, and the promise exists":  {observed: promised(leafBound, stampedVolume, retainedVolume, toFulfil, rootGone), want: "leaf_pv: Fulfil"},
		"the leaf volume has a stamp, and the promise is gone": {observed: promised(leafBound, stampedVolume, retainedVolume, rootGone), want: "deleteRetained"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := named(tc.observed); got != tc.want {
				t.Errorf("decision is %s, want %s", got, tc.want)
			}
		})
	}
}

// A claim that reuses a promise has lost the promise's PV. Its disk is here, and nowhere else.
func TestDecideLostPromise(t *testing.T) {
	reused := func(o *scene) { o.root.Spec.VolumeName, o.promise = hostpv.PromiseName("earlier-uid"), nil }
	lost := func(o *scene) { o.lost = true }
	for name, tc := range map[string]struct {
		observed     observe.Claim
		want, reason string
	}{
		"the reused promise was lost":                                      {promised(placedIn(here.ClusterID), leafBound, reused, lost), "nothing", ""},
		"the reused promise has its volume elsewhere":                      {promised(placedIn(here.ClusterID), leafBound, reused, away), "nothing", v1alpha1.ReasonSurplusVolume},
		"the reused promise is not in the cache":                           {promised(placedIn(here.ClusterID), leafBound, reused), "nothing", v1alpha1.ReasonVolumeMismatch},
		"the claim's own promise was lost":                                 {promised(placedIn(here.ClusterID), leafBound, func(o *scene) { o.promise = nil }), "nothing", ""},
		"the reused promise was lost, and the disk is not provisioned yet": {promised(placedIn(here.ClusterID), pushed, reused, lost), "withdraw", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, reason := named(tc.observed); got != tc.want || reason != tc.reason {
				t.Errorf("decision is %s %s, want %s %s", got, reason, tc.want, tc.reason)
			}
		})
	}
}

// hostReads serves reads of the host, cached or live, including lists of Pods.
type hostReads struct {
	reads
	pods []corev1.Pod
}

func (r hostReads) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if pods, ok := list.(*corev1.PodList); ok {
		pods.Items = r.pods
	}
	return r.err
}

// nominated returns a Pod that the scheduler will bind here once the volume of its other claim is
// bound.
func nominated() corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	for _, claim := range []string{"data", "other"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	pod.Status.NominatedNodeName = here.NodeName
	return pod
}

// A promise is withdrawn only if a live list of Pods shows that no Pod needs it.
func TestWithdrawalOfPromiseIsLive(t *testing.T) {
	down := errors.New("connection refused")
	bound := nominated()
	bound.Spec.NodeName, bound.Status.NominatedNodeName = here.NodeName, ""
	others := bound.DeepCopy()
	others.Spec.Volumes = others.Spec.Volumes[1:]
	for what, is := range map[string][]func(*scene){
		"withdraw": {placedIn(here.ClusterID), labelled(here.ClusterID), pushed},
		"unlabel":  {placedIn(here.ClusterID), labelled(here.ClusterID)},
		"unplace":  {placedIn(here.ClusterID)},
	} {
		for name, tc := range map[string]struct {
			change func(*scene)
			host   hostReads
			want   error
		}{
			"no Pod exists":              {want: errWrite},
			"a Pod is bound to the node": {host: hostReads{pods: []corev1.Pod{bound}}},
			"a Pod uses another claim":   {host: hostReads{pods: []corev1.Pod{*others}}, want: errWrite},
			"the claim is being deleted": {change: rootDeleting, host: hostReads{pods: []corev1.Pod{bound}}, want: map[bool]error{true: nil, false: errWrite}[what == "withdraw"]},
			"the host does not respond":  {host: hostReads{reads: reads{err: down}}, want: down},
		} {
			t.Run(what+", "+name, func(t *testing.T) {
				s := promisedScene(is...)
				if tc.change != nil {
					tc.change(&s)
				}
				o := s.observe()
				o.Observed.Placement.LeafClass = &storagev1.StorageClass{}
				if got, _ := named(o); got != what {
					t.Fatalf("decision is %s, want %s", got, what)
				}
				tc.host.claim = o.Root
				r := newReconciler(&member.Link{
					Member: here, Host: hostReads{}, Cache: cluster{}, HostLive: tc.host, Live: reads{}, Clock: clocktesting.NewFakePassiveClock(now.Time),
					CheckNotSuspended: func() error { return nil },
					MemberWriter:      guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
					HostWriter:        guarded.NewHostWriter(writes{}, here.Registration, guarded.HostOnlyGuard{}),
				}, Options{})
				if err := r.executeStep(t.Context(), o, planForClaim(o)); !errors.Is(err, tc.want) {
					t.Errorf("error is %v, want %v", err, tc.want)
				}
			})
		}
	}
}

// A disk that is being released is neither reported as missing nor claimed again.
func TestDecideReleasing(t *testing.T) {
	o := sceneOf(func(o *scene) {
		o.class.Parameters = map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused}
		promise := hostpv.NewPromiseFor(o.root, o.class)
		o.root.Spec.VolumeName = promise.Name
		promise.Status.Phase = corev1.VolumeBound
		o.hosts = []corev1.PersistentVolume{*hostpv.FulfillPromise(hostpv.PromiseWithMember(promise, here, nil), leafPV(), corev1.PersistentVolumeReclaimDelete, here)}
	})
	if got, reason := named(o.observe()); got != "nothing" || reason != v1alpha1.ReasonVolumeLost {
		t.Errorf("in use: decision is %s %s, want a report of VolumeLost", got, reason)
	}
	o.hosts[0].Annotations[v1alpha1.AnnotationReleasing] = o.hosts[0].Annotations[v1alpha1.AttributeLeafUID]
	if got, reason := named(o.observe()); got != "root_pv: Unfulfil" || reason != "" {
		t.Errorf("releasing: decision is %s %s, want Unfulfil by root_pv", got, reason)
	}
}

// If a claim's disk is released with its last Pod, root_pv owns the volume while no Pod uses the
// claim. Otherwise, the claim is like any other.
func TestDecideIdle(t *testing.T) {
	promise := func(o *scene) {
		o.class.Parameters = map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused}
		leafBound(o)
		bound(o)
		pv := hostpv.NewPromiseFor(&corev1.PersistentVolumeClaim{ObjectMeta: o.root.ObjectMeta}, o.class)
		o.hosts[0] = *hostpv.FulfillPromise(hostpv.PromiseWithMember(pv, here, &corev1.Pod{}), o.leafVolume, corev1.PersistentVolumeReclaimDelete, here)
		o.hosts[0].Status.Phase = corev1.VolumeBound
		o.root.Spec.VolumeName = pv.Name
	}
	used := func(o *scene) {
		pod := nominated()
		pod.Spec.NodeName = here.NodeName
		o.pods = []corev1.Pod{pod}
	}
	retained := func(o *scene) {
		o.hosts[0].Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	marked := func(o *scene) {
		o.hosts[0].Annotations[v1alpha1.AnnotationUnusedSince] = now.Format(time.RFC3339)
	}
	for name, tc := range map[string]struct {
		observed     observe.Claim
		want, reason string
	}{
		"a Pod uses the claim": {observed: seen(promise, used), want: "nothing"},
		"a Pod uses the claim, and root_pv must remove the mark":                                    {observed: seen(promise, used, marked), want: "nothing"},
		"a Pod uses the claim, and the user requests more capacity":                                 {observed: seen(promise, used, grown("2Gi")), want: "grow"},
		"a Pod uses the claim, and the leaf was deleted":                                            {observed: seen(promise, used, noLeaf), want: "nothing", reason: v1alpha1.ReasonVolumeLost},
		"a Pod uses the claim, which is not placed":                                                 {observed: seen(promise, used, placedIn("")), want: "place"},
		"no Pod uses the claim: root_pv releases the disk":                                          {observed: seen(promise), want: "nothing"},
		"no Pod uses the claim, and the host PV has policy Retain":                                  {observed: seen(promise, retained), want: "nothing"},
		"no Pod uses the claim, the host PV has policy Retain, and the user requests more capacity": {observed: seen(promise, retained, grown("2Gi")), want: "grow"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, reason := named(tc.observed); got != tc.want || reason != tc.reason {
				t.Errorf("decision is %s %s, want %s %s", got, reason, tc.want, tc.reason)
			}
		})
	}
}

// promiseReads serves live reads of one host PV.
type promiseReads struct {
	client.Reader
	pv *corev1.PersistentVolume
}

func (r promiseReads) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if pv, ok := into.(*corev1.PersistentVolume); ok {
		r.pv.DeepCopyInto(pv)
		return nil
	}
	return fmt.Errorf("read of %T", into)
}

// A promise is read live before its leaf claim is created, because the cache may lag. A disk that
// is released with its last Pod may already be gone.
func TestNeededIsLive(t *testing.T) {
	unfulfilled := promised(func(o *scene) {
		o.promise.Spec.CSI.VolumeAttributes[v1alpha1.ParameterRelease] = v1alpha1.ReleaseWhenUnused
		o.promise = hostpv.PromiseWithMember(hostpv.NewPromiseFor(o.root, hostpv.ClassOfPromise(o.promise)), here, nil)
	})
	promise := unfulfilled.Observed.Promise
	full := hostpv.FulfillPromise(promise, leafPV(), corev1.PersistentVolumeReclaimDelete, here)
	releasing := full.DeepCopy()
	releasing.Annotations[v1alpha1.AnnotationReleasing] = releasing.Annotations[v1alpha1.AttributeLeafUID]
	fulfilled := unfulfilled
	fulfilled.Observed = &volume.Observed{Member: here, Host: full, Name: leafPV().Name, UID: leafPV().UID}
	for name, tc := range map[string]struct {
		seen observe.Claim
		live *corev1.PersistentVolume
		want bool
	}{
		"observed without a disk, and unchanged":                  {unfulfilled, promise, true},
		"observed without a disk, but fulfilled in the meantime":  {unfulfilled, full, false},
		"observed in this member, but released in the meantime":   {unfulfilled, hostpv.PromiseWithoutMember(promise), false},
		"observed with a disk, and unchanged":                     {fulfilled, full, true},
		"observed with a disk, which was deleted in the meantime": {fulfilled, hostpv.PromiseWithoutMember(full), false},
		"observed with a disk, which is now being released":       {fulfilled, releasing, false},
		"a mirrored claim": {seen(), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReconciler(&member.Link{Member: here, HostLive: promiseReads{pv: tc.live}}, Options{})
			if got, err := r.proveDiskNeeded(t.Context(), tc.seen); err != nil || got != tc.want {
				t.Errorf("needed is %t, %v, want %t", got, err, tc.want)
			}
		})
	}
}

// Only the member with the data source can fulfill a promise for a clone. That member reports why
// the claim waits, even before the claim is placed. Any other promise may be fulfilled in any
// member, so no member reports on it before it is placed.
func TestPromiseOfACloneIsReportedByTheMemberOfItsSource(t *testing.T) {
	other := mirror.Member{Registration: "cluster39", ClusterID: elsewhereID, NodeName: elsewhereNode, HostID: here.HostID}
	plain, copies := promised(), promised(copying(func(f *volume.SourceInMember) {
		f.At = placement.CopyLocation{Refusal: &mirror.Refusal{Reason: v1alpha1.ReasonSourceGone, Message: "deleted"}}
	}))
	if plain.PlacedConditionOwnedBy(here) || plain.PlacedConditionOwnedBy(other) {
		t.Error("a member reports on a promise that it does not have")
	}
	if !copies.PlacedConditionOwnedBy(here) || copies.PlacedConditionOwnedBy(other) {
		t.Error("want a report from the member that had the data source, and from no other")
	}
}
