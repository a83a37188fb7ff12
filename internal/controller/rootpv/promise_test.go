package rootpv

import (
	"context"
	"errors"
	"fmt"
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
)

const grace = time.Minute

// unused is a fulfilled promise whose disk goes with its last Pod; the Pod that it
// was made for is gone.
func unused(change ...func(*observed)) observed {
	o := seen()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}, Parameters: map[string]string{
		v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused,
		v1alpha1.ParameterReleaseGrace: grace.String(),
	}}
	consumer := pod("app", here.NodeName)
	o.host = mirror.Fulfil(mirror.WithMember(mirror.PromiseFor(root, class), here, &consumer), o.leaf, deletes, here)
	o.host.UID, o.host.ResourceVersion = "host-pv-uid", "7"
	o.host.Status.Phase = corev1.VolumeBound
	o.now, o.grace, o.node = now.Time, grace, here.NodeName
	for _, c := range change {
		c(&o)
	}
	return o
}

func pod(name, node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "pod-uid"},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}},
	}
}

func usedOn(node string) func(*observed) {
	return func(o *observed) { o.consumers = append(o.consumers, pod("user", node)) }
}

func markedFor(d time.Duration) func(*observed) {
	return func(o *observed) {
		o.host.Annotations[v1alpha1.AnnotationUnusedSince] = now.Add(-d).UTC().Format(time.RFC3339)
		o.idle, o.listed = d, true
	}
}

func releasing(o *observed) {
	markedFor(2 * grace)(o)
	o.host.Annotations[v1alpha1.AnnotationReleasing] = string(o.leafUID)
}

func without(key string) func(*observed) {
	return func(o *observed) { delete(o.host.Annotations, key) }
}

// letGo: its cluster was deregistered.
func letGo(o *observed) { o.host.Finalizers = nil }

func leafClaimGone(o *observed) { o.claim = nil }

func TestDecideUnused(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		want     decision
	}{
		"no Pod any more":                            {observed: unused(), want: markUnused{}},
		"a Pod here":                                 {observed: unused(usedOn(here.NodeName)), want: nothing{}},
		"a Pod without a node":                       {observed: unused(usedOn("")), want: await{lookAgain}},
		"marked, within the grace":                   {observed: unused(markedFor(grace / 3)), want: await{grace * 2 / 3}},
		"marked, a Pod here":                         {observed: unused(markedFor(2*grace), usedOn(here.NodeName)), want: unmark{}},
		"marked, a Pod without a node":               {observed: unused(markedFor(2*grace), usedOn("")), want: unmark{}},
		"the grace is over":                          {observed: unused(markedFor(grace)), want: markReleasing{}},
		"marked long ago, by another leader's clock": {observed: unused(markedFor(24*time.Hour), func(o *observed) { o.idle, o.listed = 0, false }), want: listUnused{}},
		"marked long ago, listed here a moment ago":  {observed: unused(markedFor(24*time.Hour), func(o *observed) { o.idle = grace / 4 }), want: await{grace * 3 / 4}},
		"marked by a clock that is ahead":            {observed: unused(markedFor(-24*time.Hour), func(o *observed) { o.idle = grace }), want: markReleasing{}},
		"a Pod on a node that may be here":           {observed: unused(usedOn("renamed")), want: await{lookAgain}},
		"marked, a Pod on a node that may be here":   {observed: unused(markedFor(2*grace), usedOn("renamed")), want: unmark{}},
		"a mark that is no time, a Pod here":         {observed: unused(usedOn(here.NodeName), func(o *observed) { o.host.Annotations[v1alpha1.AnnotationUnusedSince] = "ever" }), want: unmark{}},
		"a mark that is no time":                     {observed: unused(func(o *observed) { o.host.Annotations[v1alpha1.AnnotationUnusedSince] = "ever" }), want: markUnused{}},
		"marked as releasing":                        {observed: unused(releasing), want: flipUnused{}},
		"releasing, and a Pod was bound before":      {observed: unused(releasing, usedOn(here.NodeName)), want: unmark{}},
		"releasing, of another disk":                 {observed: unused(markedFor(2*grace), func(o *observed) { o.host.Annotations[v1alpha1.AnnotationReleasing] = "other" }), want: markReleasing{}},
		"put to Delete":                              {observed: unused(releasing, leafPolicy(deletes)), want: deleteUnused{}},
		"put to Delete, and a Pod comes":             {observed: unused(releasing, leafPolicy(deletes), usedOn(here.NodeName)), want: deleteUnused{}},
		"the leaf claim is being deleted":            {observed: unused(releasing, leafPolicy(deletes), func(o *observed) { o.claim.DeletionTimestamp = &now }), want: nothing{}},
		"the leaf claim is gone":                     {observed: unused(releasing, leafPolicy(deletes), leafClaimGone), want: nothing{}},
		"the leaf PV is gone, the claim is not":      {observed: unused(releasing, noLeaf), want: deleteUnused{}},
		"both are gone":                              {observed: unused(releasing, noLeaf, leafClaimGone), want: unfulfil{}},
		"let go of with its cluster, which is back":  {observed: unused(letGo), want: nothing{}},
		"the same, while it is released":             {observed: unused(letGo, releasing, leafPolicy(deletes)), want: deleteUnused{}},
		"the same, both are gone":                    {observed: unused(letGo, releasing, noLeaf, leafClaimGone), want: unfulfil{}},
		"the same, a Pod comes in time":              {observed: unused(letGo, releasing, usedOn(here.NodeName)), want: unmark{}},
		"the same, and abandoned":                    {observed: unused(letGo, releasing, noLeaf, leafClaimGone, abandon), want: nothing{}},
		"the same, its claim is gone":                {observed: unused(letGo, releasing, noLeaf, leafClaimGone, phase(corev1.VolumeReleased)), want: nothing{}},
		"gone, and not by us":                        {observed: unused(noLeaf, leafClaimGone), want: nothing{}},
		"no consumer was ever recorded":              {observed: unused(without(v1alpha1.AnnotationConsumer)), want: nothing{}},
		"the member retains":                         {observed: unused(gave("Retain")), want: keep{}},
		"the host PV retains":                        {observed: unused(hostPolicy(retains)), want: keep{}},
		"an admin chose Retain within the grace":     {observed: unused(markedFor(2*grace), hostPolicy(retains)), want: keep{}},
		"not the PV that was mirrored":               {observed: unused(func(o *observed) { o.stamped = false }), want: keep{}},
		"its claim is gone":                          {observed: unused(phase(corev1.VolumeReleased)), want: flip{}},
		"its claim is gone while it is released":     {observed: unused(releasing, leafPolicy(deletes), phase(corev1.VolumeReleased)), want: deleteClaim{}},
		"abandoned":                                  {observed: unused(func(o *observed) { o.host.Annotations[v1alpha1.AnnotationAbandon] = "true" }), want: nothing{}},
		"it goes with its claim only":                {observed: unused(func(o *observed) { delete(o.host.Spec.CSI.VolumeAttributes, v1alpha1.ParameterRelease) }), want: nothing{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.observed); got != tc.want {
				t.Errorf("decision is %T%+v, want %T%+v", got, got, tc.want, tc.want)
			}
		})
	}
}

// unfulfilled is a promise without a disk that the member has, and whose claim is gone.
func unfulfilled(change ...func(*observed)) observed {
	o := unused(func(o *observed) {
		o.host = mirror.WithMember(mirror.PromiseFor(root, &storagev1.StorageClass{}), here, nil)
		o.unfulfilled, o.leaf, o.claim = true, nil, nil
		o.host.UID, o.host.Status.Phase = "host-uid", corev1.VolumeReleased
	})
	for _, c := range change {
		c(&o)
	}
	return o
}

func TestDecideUnfulfilled(t *testing.T) {
	deleting := func(o *observed) { o.host.DeletionTimestamp = &now }
	for name, tc := range map[string]struct {
		observed observed
		want     decision
	}{
		"its claim is gone":              {observed: unfulfilled(), want: releasePromise{}},
		"its claim is gone, it retains":  {observed: unfulfilled(hostPolicy(retains)), want: releasePromise{}},
		"its claim lives":                {observed: unfulfilled(phase(corev1.VolumeBound)), want: nothing{}},
		"deleted, its claim is gone":     {observed: unfulfilled(deleting), want: releasePromise{}},
		"deleted, an admin freed it":     {observed: unfulfilled(deleting, phase(corev1.VolumeAvailable)), want: release{}},
		"abandoned, which host_volume's": {observed: unfulfilled(func(o *observed) { o.host.Annotations[v1alpha1.AnnotationAbandon] = "true" }), want: nothing{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.observed); got != tc.want {
				t.Errorf("decision is %T%+v, want %T%+v", got, got, tc.want, tc.want)
			}
		})
	}
}

// accepts accepts every write.
type accepts struct{ client.Client }

func (accepts) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

// podReads are reads of the host that also know Pods.
type podReads struct {
	reads
	pods []corev1.Pod
	err  error
}

func (r *podReads) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if r.err != nil {
		return r.err
	}
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return fmt.Errorf("list of %T", list)
	}
	pods.Items = r.pods
	return nil
}

// Each step of a release is taken on live reads: of the promise, and of the Pods.
func TestReleaseProves(t *testing.T) {
	errList := errors.New("no list")
	finished := pod("done", here.NodeName)
	finished.Status.Phase = corev1.PodSucceeded
	other := pod("other", here.NodeName)
	other.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "others"
	daemon := pod("daemon", here.NodeName)
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: ptr.To(true)}}
	adopted := *daemon.DeepCopy()
	adopted.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue}}
	for name, tc := range map[string]struct {
		pods    []corev1.Pod
		listErr error
		// host changes what a live read of the promise finds.
		host      func(*corev1.PersistentVolume)
		suspended error
		written   bool
		fails     error
		requeued  bool
	}{
		"no Pod":                                   {written: true},
		"a Pod that has ended":                     {pods: []corev1.Pod{finished}, written: true},
		"a Pod of another claim":                   {pods: []corev1.Pod{other}, written: true},
		"a Pod in another member":                  {pods: []corev1.Pod{pod("far", "kosmos-cluster39")}, written: true},
		"a Pod on another node of this cluster":    {pods: []corev1.Pod{pod("user", "kosmos-older")}, requeued: true},
		"a Pod on a node that names no cluster":    {pods: []corev1.Pod{pod("user", "worker-1")}, requeued: true},
		"a Pod on a node that is gone, or renamed": {pods: []corev1.Pod{pod("user", "gone")}, requeued: true},
		"a Pod here":                               {pods: []corev1.Pod{pod("user", here.NodeName)}, requeued: true},
		"a Pod without a node":                     {pods: []corev1.Pod{pod("user", "")}, requeued: true},
		"a DaemonSet's: no leaf":                   {pods: []corev1.Pod{daemon}, written: true},
		"adopted by a DaemonSet":                   {pods: []corev1.Pod{adopted}, requeued: true},
		"the list fails":                           {listErr: errList, fails: errList},
		"the promise has changed":                  {host: func(pv *corev1.PersistentVolume) { pv.ResourceVersion = "8" }},
		"the promise is gone":                      {host: func(pv *corev1.PersistentVolume) { *pv = corev1.PersistentVolume{} }},
		"nothing may be destroyed":                 {suspended: guarded.ErrSuspended, fails: guarded.ErrSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			o := unused(releasing)
			host := &podReads{pods: tc.pods, err: tc.listErr}
			host.nodes = map[string]string{"kosmos-cluster39": "id39", "kosmos-older": here.ClusterID, "worker-1": ""}
			live := o.host.DeepCopy()
			if tc.host != nil {
				tc.host(live)
			}
			if live.Name != "" {
				host.volume = live
			}
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: host, Live: &reads{volume: o.leaf}, MayDestroy: func() error { return tc.suspended },
				Leaf: guarded.NewLeaf(writes{}, here.HostID, here.Registration, guarded.HostOnly{}),
				Root: guarded.NewRoot(accepts{}, here.Registration, guarded.HostOnly{}),
			}, idle: newIdle()}
			result, err := r.act(t.Context(), o, decide(o))
			switch {
			case tc.written && !errors.Is(err, errWrite):
				t.Errorf("the leaf PV was not written: %v", err)
			case !tc.written && errors.Is(err, errWrite):
				t.Error("the leaf PV was written")
			case tc.fails != nil && !errors.Is(err, tc.fails):
				t.Errorf("error is %v, want %v", err, tc.fails)
			case !tc.written && tc.fails == nil && err != nil:
				t.Errorf("unexpected error: %v", err)
			}
			if requeued := result.RequeueAfter > 0; requeued != tc.requeued {
				t.Errorf("looked at again: %t", requeued)
			}
		})
	}
}

// The grace is this process's own: another leader's mark begins it, and a Pod ends it.
func TestGraceOfThisProcess(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(now.Time)
	o := unused(markedFor(24 * time.Hour))
	host := &podReads{reads: reads{volume: o.host}}
	r := &reconciler{Link: &member.Link{
		Member: here, HostLive: host, Clock: clock, MayDestroy: func() error { return nil },
		Root: guarded.NewRoot(accepts{}, here.Registration, guarded.HostOnly{}),
	}, idle: newIdle()}
	step := func(after time.Duration) decision {
		clock.SetTime(clock.Now().Add(after))
		o.idle, o.listed = r.idle.since(o.host, clock.Now())
		d := decide(o)
		if _, err := r.act(t.Context(), o, d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	for i, want := range []decision{listUnused{}, await{grace}, await{grace / 2}} {
		if got := step(time.Duration(i/2) * grace / 2); got != want {
			t.Fatalf("step %d: decision is %T%+v, want %T%+v", i, got, got, want, want)
		}
	}
	if got := step(grace / 2); got != (markReleasing{}) {
		t.Errorf("decision is %T%+v after the grace", got, got)
	}
	host.pods = []corev1.Pod{pod("user", here.NodeName)}
	o.consumers = host.pods
	if got := step(0); got != (unmark{}) {
		t.Errorf("decision is %T%+v with a Pod", got, got)
	}
	host.pods, o.consumers = nil, nil
	if got := step(time.Hour); got != (listUnused{}) {
		t.Errorf("decision is %T%+v after a Pod: the grace begins again", got, got)
	}
}

// Once the leaf PV is put to Delete there is no way back, whatever the cache shows
// of it: the promise stays marked, and no Pod is pushed to a disk that goes.
func TestNoWayBack(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		observed observed
		change   func(leaf *reads)
		want     error
	}{
		"held": {observed: unused(releasing), want: errWrite},
		"put to Delete a moment ago": {observed: unused(releasing), change: func(leaf *reads) {
			leaf.volume.Spec.PersistentVolumeReclaimPolicy = deletes
		}},
		"gone a moment ago":               {observed: unused(releasing), change: func(leaf *reads) { leaf.volume = nil }},
		"restored under another UID":      {observed: unused(releasing), change: func(leaf *reads) { leaf.volume.UID = "restored" }},
		"the member does not answer":      {observed: unused(releasing), change: func(leaf *reads) { leaf.err = down }, want: down},
		"not marked as releasing yet":     {observed: unused(markedFor(grace)), change: func(leaf *reads) { leaf.err = down }, want: errWrite},
		"marked as releasing, of another": {observed: unused(markedFor(grace), func(o *observed) { o.host.Annotations[v1alpha1.AnnotationReleasing] = "other" }), change: func(leaf *reads) { leaf.err = down }, want: errWrite},
	} {
		for who, pod := range map[string]corev1.Pod{"seen": pod("user", here.NodeName), "found by the last list": pod("user", "")} {
			t.Run(name+", a Pod is "+who, func(t *testing.T) {
				o := tc.observed
				leaf := &reads{volume: o.leaf.DeepCopy()}
				if tc.change != nil {
					tc.change(leaf)
				}
				if who == "seen" {
					o.consumers = []corev1.Pod{pod}
				}
				r := &reconciler{Link: &member.Link{
					Member: here, HostLive: &podReads{reads: reads{volume: o.host}, pods: []corev1.Pod{pod}}, Live: leaf, MayDestroy: func() error { return nil },
					Root: guarded.NewRoot(writes{}, here.Registration, guarded.HostOnly{}),
				}, idle: newIdle()}
				if _, err := r.act(t.Context(), o, decide(o)); !errors.Is(err, tc.want) {
					t.Errorf("error is %v, want %v", err, tc.want)
				}
			})
		}
	}
}

// The leaf claim is deleted, and the disk with it, only while the promise is marked.
func TestDeleteUnusedIsLive(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		change func(host, leaf *reads)
		want   error
	}{
		"all as seen":                 {change: func(*reads, *reads) {}, want: errWrite},
		"the promise has changed":     {change: func(host, _ *reads) { host.volume.ResourceVersion = "8" }},
		"the promise was made anew":   {change: func(host, _ *reads) { host.volume.UID = "newer" }},
		"the promise is gone":         {change: func(host, _ *reads) { host.volume = nil }},
		"the host does not answer":    {change: func(host, _ *reads) { host.err = down }, want: down},
		"the leaf PV is held again":   {change: func(_, leaf *reads) { leaf.volume.Spec.PersistentVolumeReclaimPolicy = retains }},
		"the leaf PV is another":      {change: func(_, leaf *reads) { leaf.volume.UID = "restored" }},
		"the member does not answer":  {change: func(_, leaf *reads) { leaf.err = down }, want: down},
		"the leaf PV has gone before": {change: func(_, leaf *reads) { leaf.volume = nil }, want: errWrite},
	} {
		t.Run(name, func(t *testing.T) {
			o := unused(releasing, leafPolicy(deletes), usedOn(here.NodeName))
			host, leaf := &reads{volume: o.host.DeepCopy()}, &reads{volume: o.leaf.DeepCopy()}
			tc.change(host, leaf)
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: host, Live: leaf,
				Leaf: guarded.NewLeaf(writes{}, here.HostID, here.Registration, guarded.HostOnly{}),
			}}
			if _, err := r.act(t.Context(), o, decide(o)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

// indexed answers look-ups of host PVs by an index from a map by its value.
type indexed struct {
	client.Reader
	volumes map[string]*corev1.PersistentVolume
}

func (r indexed) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	pvs, ok := list.(*corev1.PersistentVolumeList)
	if !ok {
		return fmt.Errorf("list of %T", list)
	}
	for _, requirement := range asked.FieldSelector.Requirements() {
		if pv, found := r.volumes[requirement.Value]; found {
			pvs.Items = append(pvs.Items, *pv)
		}
	}
	return nil
}

// A promise that was released before it was fulfilled waits for the leaf claim to
// go, and nothing of its own changes then.
func TestWakesByLeafClaim(t *testing.T) {
	placed := mirror.WithMember(mirror.PromiseFor(root, &storagev1.StorageClass{}), here, nil)
	elsewhere := mirror.WithMember(placed, mirror.Member{ClusterID: "id39"}, nil)
	for name, tc := range map[string]struct {
		volumes map[string]*corev1.PersistentVolume
		claim   *corev1.PersistentVolumeClaim
		want    []string
	}{
		"bound to a mirrored volume":  {map[string]*corev1.PersistentVolume{"id38/pv-1": seen().host}, seen().claim, []string{"pv-1"}},
		"not bound":                   {map[string]*corev1.PersistentVolume{"root-uid": placed}, unbound(seen().claim), []string{placed.Name}},
		"bound, not mirrored":         {map[string]*corev1.PersistentVolume{"root-uid": placed}, seen().claim, []string{placed.Name}},
		"another member's promise":    {map[string]*corev1.PersistentVolume{"root-uid": elsewhere}, unbound(seen().claim), nil},
		"fulfilled by another volume": {map[string]*corev1.PersistentVolume{"root-uid": unused().host}, unbound(seen().claim), nil},
		"no promise":                  {nil, unbound(seen().claim), nil},
		"none of ours":                {map[string]*corev1.PersistentVolume{"root-uid": placed}, &corev1.PersistentVolumeClaim{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{Link: &member.Link{Member: here, Host: indexed{volumes: tc.volumes}}}
			var got []string
			for _, request := range r.ofLeafClaim(t.Context(), tc.claim) {
				got = append(got, request.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

func unbound(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim.Spec.VolumeName = ""
	return claim
}
