package clusterregistration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const clusterID = "3f0c"

var now = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))

func pod(name string, phase corev1.PodPhase, deleted bool) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PodStatus{Phase: phase}}
	if deleted {
		p.DeletionTimestamp = &now
	}
	return p
}

func TestNext(t *testing.T) {
	running := []corev1.Pod{pod("web-1", corev1.PodRunning, false)}
	pending := []corev1.Pod{pod("web-1", corev1.PodPending, false)}
	ending := []corev1.Pod{pod("web-1", corev1.PodRunning, true), pod("done", corev1.PodSucceeded, false), pod("broken", corev1.PodFailed, false)}
	claim := []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}}
	held := []corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", Finalizers: []string{v1alpha1.FinalizerLeafVolume}}}}
	letGo := []corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}}}
	const retain, drain = v1alpha1.DeregistrationRetain, v1alpha1.DeregistrationDrain

	for name, tc := range map[string]struct {
		leaving leaving
		want    step
	}{
		"nothing is there":                                                  {leaving{connected: true}, finish},
		"nothing is there, and the member is away":                          {leaving{}, finish},
		"Pods run there, nobody confirmed":                                  {leaving{connected: true, node: true, pods: running}, waitForConfirmation},
		"Pods wait there, nobody confirmed":                                 {leaving{connected: true, node: true, pods: pending}, waitForConfirmation},
		"Pods run there, confirmed":                                         {leaving{connected: true, confirmed: true, node: true, pods: running}, evictPods},
		"Pods only end there: nothing to confirm":                           {leaving{connected: true, node: true, pods: ending}, evictPods},
		"Pods run there, and the member is away (I2)":                       {leaving{confirmed: true, node: true, pods: running}, waitForMember},
		"Pods run there, forced, the member is connected: nobody confirmed": {leaving{connected: true, forced: true, node: true, pods: running}, waitForConfirmation},
		"Pods run there, the member is away, forced":                        {leaving{forced: true, node: true, pods: running}, evictPods},
		"Pods run there, the member is away, forced and confirmed":          {leaving{forced: true, confirmed: true, node: true, pods: running}, evictPods},
		"Pods run there whose Node was deleted, nobody confirmed":           {leaving{connected: true, pods: running}, waitForConfirmation},
		"leaf Pods run there whose Pods were deleted with the Node":         {leaving{connected: true, leaves: []string{"shop/web-1"}, volumes: held}, waitForLeaves},
		"the same, forced":                                                  {leaving{connected: true, forced: true, leaves: []string{"shop/web-1"}, volumes: held}, releaseVolumes},
		"a claim without a volume":                                          {leaving{connected: true, node: true, unbound: claim}, withdrawClaims},
		"a claim without a volume, and the member is away (I1)":             {leaving{node: true, unbound: claim}, waitForMember},
		"a claim without a volume, the member is away, forced":              {leaving{forced: true, node: true, unbound: claim}, withdrawClaims},
		"a promise without a disk":                                          {leaving{connected: true, node: true, promises: held}, withdrawClaims},
		"a promise without a disk, Drain waits for it":                      {leaving{connected: true, policy: drain, node: true, promises: held}, withdrawClaims},
		"a promise without a disk, and the member is away (I1)":             {leaving{node: true, promises: held}, waitForMember},
		"a promise without a disk, the member is away, forced":              {leaving{forced: true, node: true, promises: held}, withdrawClaims},
		"Pods first, claims then":                                           {leaving{connected: true, confirmed: true, pods: running, unbound: claim}, evictPods},
		"Retain: bound claims stay, their volumes are let go of":            {leaving{connected: true, policy: retain, node: true, bound: claim, volumes: held}, releaseVolumes},
		"Retain, and the member is away: nothing there is needed":           {leaving{policy: retain, node: true, bound: claim, volumes: held}, releaseVolumes},
		"no policy is Retain":                                               {leaving{connected: true, node: true, bound: claim, volumes: held}, releaseVolumes},
		"Drain: bound claims are waited for (I2)":                           {leaving{connected: true, policy: drain, node: true, bound: claim, volumes: held}, waitForClaims},
		"Drain: volumes without claims are waited for (I1)":                 {leaving{connected: true, policy: drain, node: true, volumes: held}, waitForClaims},
		"Drain, and the member is away (I1)":                                {leaving{policy: drain, node: true, bound: claim, volumes: held}, waitForMember},
		"Drain, the member is away, forced: volumes are let go of, not destroyed (I2)": {
			leaving{policy: drain, forced: true, node: true, bound: claim, volumes: held}, releaseVolumes},
		"Drain, all is gone":                {leaving{connected: true, policy: drain, node: true}, waitForNode},
		"volumes are let go of, node there": {leaving{policy: retain, node: true, bound: claim, volumes: letGo}, waitForNode},
		"volumes are let go of, node gone":  {leaving{policy: retain, bound: claim, volumes: letGo}, finish},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.leaving.next(); got != tc.want {
				t.Errorf("next step is %d, want %d", got, tc.want)
			}
		})
	}
}

// Of a lost member that an admin insists on leaving, promises are taken whose disks
// were not to outlive their Pods.
func TestRecall(t *testing.T) {
	m := mirror.Member{Registration: "cluster38", ClusterID: clusterID}
	volume := func(name, release string) corev1.PersistentVolume {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
		pv := hostpv.PromiseFor(claim, &storagev1.StorageClass{Parameters: map[string]string{v1alpha1.ParameterRelease: release}})
		leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name, UID: "leaf"}}
		pv = hostpv.Fulfil(hostpv.WithMember(pv, m, nil), leaf, corev1.PersistentVolumeReclaimDelete, m)
		pv.Name, pv.Status.Phase = name, corev1.VolumeBound
		return *pv
	}
	for name, tc := range map[string]struct {
		connected, forced bool
		promises, volumes string
	}{
		"the member is lost, forced":  {forced: true, promises: "scratch", volumes: "data"},
		"forced, and it is connected": {connected: true, forced: true, volumes: "data, scratch"},
		"away, nobody insists":        {volumes: "data, scratch"},
	} {
		t.Run(name, func(t *testing.T) {
			l := leaving{connected: tc.connected, forced: tc.forced, volumes: []corev1.PersistentVolume{
				volume("data", v1alpha1.ReleaseOnClaimDeletion), volume("scratch", v1alpha1.ReleaseWhenUnused),
			}}
			l.recall()
			if diff := cmp.Diff([]string{tc.promises, tc.volumes}, []string{some(l.promises), some(l.volumes)}); diff != "" {
				t.Errorf("promises and volumes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	identity := member.Identity{ClusterID: clusterID, Version: "v1.36.3"}
	up := fleet.State{Connected: true, Synced: true, MayDestroy: true, Identity: identity}
	with := func(change func(*fleet.State)) fleet.State { s := up; change(&s); return s }
	problem := func(reason string) *access.Problem { return &access.Problem{Reason: reason, Message: "because"} }

	// Connected, NodeReady, Synced, Ready: status and reason.
	type row [4][2]string
	yes := func(reason string) [2]string { return [2]string{"True", reason} }
	no := func(reason string) [2]string { return [2]string{"False", reason} }
	connected, nodeReady, synced, ready := yes(v1alpha1.ReasonConnected), yes(v1alpha1.ReasonNodeReady), yes(v1alpha1.ReasonSynced), yes(v1alpha1.ReasonReady)

	nodeUp := metav1.Condition{Type: v1alpha1.ConditionNodeReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNodeReady, Message: "it answers"}
	nodeDown := metav1.Condition{Type: v1alpha1.ConditionNodeReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeNotReady, Message: "it is not made yet"}

	for name, tc := range map[string]struct {
		state fleet.State
		node  metav1.Condition
		ready readiness
		want  row
	}{
		"all is well": {up, nodeUp, readiness{}, row{connected, nodeReady, synced, ready}},
		"the first connection is being made": {fleet.State{}, nodeDown, readiness{},
			row{no(v1alpha1.ReasonConnecting), no(v1alpha1.ReasonNodeNotReady), no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonConnecting)}},
		"the member does not answer": {fleet.State{Problem: problem(v1alpha1.ReasonUnreachable), Identity: identity}, nodeUp, readiness{},
			row{no(v1alpha1.ReasonUnreachable), nodeReady, no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonUnreachable)}},
		"another cluster answers (I2)": {fleet.State{Problem: problem(v1alpha1.ReasonIdentityChanged)}, nodeUp, readiness{},
			row{no(v1alpha1.ReasonIdentityChanged), nodeReady, no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonIdentityChanged)}},
		"an older registration has the cluster": {fleet.State{Problem: problem(v1alpha1.ReasonDuplicateCluster)}, nodeDown, readiness{},
			row{no(v1alpha1.ReasonDuplicateCluster), no(v1alpha1.ReasonNodeNotReady), no(v1alpha1.ReasonNotConnected), no(v1alpha1.ReasonDuplicateCluster)}},
		"connected, destruction is suspended: it serves, and says so (I2)": {
			with(func(s *fleet.State) { s.MayDestroy, s.Problem = false, problem(v1alpha1.ReasonHostRestored) }), nodeUp, readiness{},
			row{yes(v1alpha1.ReasonHostRestored), nodeReady, synced, ready}},
		"the caches are being filled": {with(func(s *fleet.State) { s.Synced = false }), nodeUp, readiness{},
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
					t.Errorf("%s says nothing", c.Type)
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
		"made before":                      {made("b", now.Time), made("a", now.Add(time.Second)), true},
		"made after":                       {made("a", now.Add(time.Second)), made("b", now.Time), false},
		"made in the same second, by name": {made("a", now.Time), made("b", now.Time), true},
		"the same, the other way round":    {made("b", now.Time), made("a", now.Time), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := older(tc.a, tc.b); got != tc.want {
				t.Errorf("older is %v", got)
			}
		})
	}
}

func TestSomeNamesTheFirstFew(t *testing.T) {
	var pods []corev1.Pod
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		pods = append(pods, pod(name, corev1.PodRunning, false))
	}
	if got, want := some(pods), "shop/a, shop/b, shop/c, shop/d, shop/e, …"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := some(pods[:2]), "shop/a, shop/b"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLeft(t *testing.T) {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}}
	volume := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	for name, tc := range map[string]struct {
		l    leaving
		want string
	}{
		"a claim and its volume": {
			leaving{bound: []corev1.PersistentVolumeClaim{claim}, volumes: []corev1.PersistentVolume{volume}},
			"1 claims (ns/data) and 1 volumes (pvc-1)",
		},
		"a volume that is retained": {leaving{volumes: []corev1.PersistentVolume{volume}}, "1 volumes (pvc-1)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.l.left(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
