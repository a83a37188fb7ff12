package deregistration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/route"
)

func pod(name string, phase corev1.PodPhase, deleted bool) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PodStatus{Phase: phase}}
	if deleted {
		p.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	}
	return p
}

// leftID is the cluster ID of the member to deregister.
const leftID = "3f0c"

func TestNext(t *testing.T) {
	running := []corev1.Pod{pod("web-1", corev1.PodRunning, false)}
	pending := []corev1.Pod{pod("web-1", corev1.PodPending, false)}
	ending := []corev1.Pod{pod("web-1", corev1.PodRunning, true), pod("done", corev1.PodSucceeded, false), pod("broken", corev1.PodFailed, false)}
	claim := []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}}
	held := []corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", Finalizers: []string{v1alpha1.FinalizerLeafVolume}}}}
	released := []corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}}}
	node := []string{"kosmos-a"}
	const retain, drain = v1alpha1.DeregistrationRetain, v1alpha1.DeregistrationDrain

	for name, tc := range map[string]struct {
		leaving remainingObjects
		want    deregistrationStep
	}{
		"no objects in the member":                                                    {remainingObjects{connected: true}, stepFinish},
		"no objects in the host, but leaf Pods may still run (I6)":                    {remainingObjects{connectionPending: true}, stepWaitForConnection},
		"Pods run in a member that may be reachable, forced (I2)":                     {remainingObjects{connectionPending: true, forced: true, nodes: node, pods: running}, stepWaitForConnection},
		"volumes in a member that may be reachable (I2)":                              {remainingObjects{connectionPending: true, nodes: node, volumes: held}, stepWaitForConnection},
		"no objects in the member, and the member is unreachable":                     {remainingObjects{}, stepFinish},
		"Pods run in the member, not confirmed":                                       {remainingObjects{connected: true, nodes: node, pods: running}, stepWaitForConfirmation},
		"Pods are pending in the member, not confirmed":                               {remainingObjects{connected: true, nodes: node, pods: pending}, stepWaitForConfirmation},
		"Pods run in the member, confirmed":                                           {remainingObjects{connected: true, confirmed: true, nodes: node, pods: running}, stepEvictPods},
		"all Pods in the member are ending: no confirmation needed":                   {remainingObjects{connected: true, nodes: node, pods: ending}, stepEvictPods},
		"Pods run in the member, and the member is unreachable (I2)":                  {remainingObjects{confirmed: true, nodes: node, pods: running}, stepWaitForMember},
		"Pods run in the connected member, forced but not confirmed":                  {remainingObjects{connected: true, forced: true, nodes: node, pods: running}, stepWaitForConfirmation},
		"Pods run in the unreachable member, forced":                                  {remainingObjects{forced: true, nodes: node, pods: running}, stepEvictPods},
		"Pods run in the unreachable member, forced and confirmed":                    {remainingObjects{forced: true, confirmed: true, nodes: node, pods: running}, stepEvictPods},
		"Pods of a deleted Node run in the member, not confirmed":                     {remainingObjects{connected: true, pods: running}, stepWaitForConfirmation},
		"leaf Pods run in the member although their roots were deleted with the Node": {remainingObjects{connected: true, leafPods: []string{"shop/web-1"}, volumes: held}, stepWaitForLeafPods},
		"Services remain in the member":                                               {remainingObjects{connected: true, leafServices: []string{"shop/web"}, volumes: held}, stepWaitForLeafPods},
		"leaf Pods run in the member, and the deregistration is forced":               {remainingObjects{connected: true, forced: true, leafPods: []string{"shop/web-1"}, volumes: held}, stepReleaseVolumes},
		"a claim without a volume":                                                    {remainingObjects{connected: true, nodes: node, unboundClaims: claim}, stepWithdrawClaims},
		"a claim without a volume, and the member is unreachable (I1)":                {remainingObjects{nodes: node, unboundClaims: claim}, stepWaitForMember},
		"a claim without a volume, the member is unreachable, forced":                 {remainingObjects{forced: true, nodes: node, unboundClaims: claim}, stepWithdrawClaims},
		"a promise without a disk":                                                    {remainingObjects{connected: true, nodes: node, promises: held}, stepWithdrawClaims},
		"a promise without a disk, policy Drain":                                      {remainingObjects{connected: true, policy: drain, nodes: node, promises: held}, stepWithdrawClaims},
		"a promise without a disk, and the member is unreachable (I1)":                {remainingObjects{nodes: node, promises: held}, stepWaitForMember},
		"a promise without a disk, the member is unreachable, forced":                 {remainingObjects{forced: true, nodes: node, promises: held}, stepWithdrawClaims},
		"copies of shared volumes":                                                    {remainingObjects{connected: true, nodes: node, copiedVolumes: held}, stepReleaseVolumes},
		"copies of shared volumes, and the member is unreachable (I2)":                {remainingObjects{nodes: node, copiedVolumes: held}, stepWaitForMember},
		"copies of shared volumes, the member is unreachable, forced":                 {remainingObjects{forced: true, nodes: node, copiedVolumes: held}, stepReleaseVolumes},
		"copies of shared volumes, and the link has ended":                            {remainingObjects{linkEnded: true, nodes: node, copiedVolumes: held}, stepReleaseVolumes},
		"Pods are evicted before claims are withdrawn":                                {remainingObjects{connected: true, confirmed: true, pods: running, unboundClaims: claim}, stepEvictPods},
		"Retain: bound claims are kept, their volumes are released":                   {remainingObjects{connected: true, policy: retain, nodes: node, boundClaims: claim, volumes: held}, stepReleaseVolumes},
		"Retain: the member may be unreachable":                                       {remainingObjects{policy: retain, nodes: node, boundClaims: claim, volumes: held}, stepReleaseVolumes},
		"no policy means Retain":                                                      {remainingObjects{connected: true, nodes: node, boundClaims: claim, volumes: held}, stepReleaseVolumes},
		"Drain waits for bound claims (I2)":                                           {remainingObjects{connected: true, policy: drain, nodes: node, boundClaims: claim, volumes: held}, stepWaitForClaims},
		"Drain waits for volumes without claims (I1)":                                 {remainingObjects{connected: true, policy: drain, nodes: node, volumes: held}, stepWaitForClaims},
		"Drain, and the member is unreachable (I1)":                                   {remainingObjects{policy: drain, nodes: node, boundClaims: claim, volumes: held}, stepWaitForMember},
		"Drain, the member is unreachable, forced: volumes are released, not destroyed (I2)": {
			remainingObjects{policy: drain, forced: true, nodes: node, boundClaims: claim, volumes: held}, stepReleaseVolumes},
		"Drain, no claims or volumes left":           {remainingObjects{connected: true, policy: drain, nodes: node}, stepWaitForNode},
		"volumes are released, the node exists":      {remainingObjects{policy: retain, nodes: node, boundClaims: claim, volumes: released}, stepWaitForNode},
		"volumes are released, the node was deleted": {remainingObjects{policy: retain, boundClaims: claim, volumes: released}, stepFinish},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.leaving.nextStep(); got != tc.want {
				t.Errorf("next step is %d, want %d", got, tc.want)
			}
		})
	}
}

// If an admin forces the deregistration of a lost member, other members can fulfill its promises
// that are released when unused.
func TestRecall(t *testing.T) {
	m := mirror.Member{Registration: "cluster38", ClusterID: leftID}
	volume := func(name, release string, leafPolicy corev1.PersistentVolumeReclaimPolicy) corev1.PersistentVolume {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
		pv := hostpv.NewPromiseFor(claim, &storagev1.StorageClass{Parameters: map[string]string{v1alpha1.ParameterRelease: release}})
		leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name, UID: "leaf"}}
		pv = hostpv.FulfillPromise(hostpv.PromiseWithMember(pv, m, nil), leaf, leafPolicy, m)
		pv.Name, pv.Status.Phase = name, corev1.VolumeBound
		return *pv
	}
	for name, tc := range map[string]struct {
		connected, connecting, forced bool
		promises, volumes             string
	}{
		"the member may be reachable, forced":   {connecting: true, forced: true, volumes: "data, scratch, kept"},
		"the member is lost, forced":            {forced: true, promises: "scratch", volumes: "data, kept"},
		"the member is connected, forced":       {connected: true, forced: true, volumes: "data, scratch, kept"},
		"the member is unreachable, not forced": {volumes: "data, scratch, kept"},
	} {
		t.Run(name, func(t *testing.T) {
			l := remainingObjects{connected: tc.connected, connectionPending: tc.connecting, forced: tc.forced, volumes: []corev1.PersistentVolume{
				volume("data", v1alpha1.ReleaseOnClaimDeletion, corev1.PersistentVolumeReclaimDelete), volume("scratch", v1alpha1.ReleaseWhenUnused, corev1.PersistentVolumeReclaimDelete),
				volume("kept", v1alpha1.ReleaseWhenUnused, corev1.PersistentVolumeReclaimRetain),
			}}
			l.recallVolumes()
			if diff := cmp.Diff([]string{tc.promises, tc.volumes}, []string{firstObjects(l.promises), firstObjects(l.volumes)}); diff != "" {
				t.Errorf("promises and volumes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSomeNamesTheFirstFew(t *testing.T) {
	var pods []corev1.Pod
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		pods = append(pods, pod(name, corev1.PodRunning, false))
	}
	if got, want := firstObjects(pods), "shop/a, shop/b, shop/c, shop/d, shop/e, and 1 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := firstObjects(pods[:2]), "shop/a, shop/b"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLeft(t *testing.T) {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}}
	volume := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	for name, tc := range map[string]struct {
		l    remainingObjects
		want string
	}{
		"a claim and its volume": {
			remainingObjects{boundClaims: []corev1.PersistentVolumeClaim{claim}, volumes: []corev1.PersistentVolume{volume}},
			"1 claim (ns/data) and 1 volume (pvc-1)",
		},
		"a retained volume without a claim": {remainingObjects{volumes: []corev1.PersistentVolume{volume}}, "1 volume (pvc-1)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.l.describeDrainObjects(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestRemaining(t *testing.T) {
	one := []corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}}
	claims := make([]corev1.PersistentVolumeClaim, 1)
	for name, tc := range map[string]struct {
		l    remainingObjects
		want string
	}{
		"only copies": {remainingObjects{copiedVolumes: append(one, one...)}, "2 copies of shared volumes"},
		"every kind except snapshots": {
			remainingObjects{pods: []corev1.Pod{pod("a", corev1.PodRunning, false)}, unboundClaims: claims, boundClaims: claims, promises: one, volumes: one, copiedVolumes: one},
			"1 Pod, 2 claims, 1 promise without a disk, 1 volume, 1 copy of shared volumes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.l.describeRemaining(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A claim for which the scheduler has already chosen another member keeps this choice.
func TestWithdrawn(t *testing.T) {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38"}}
	for name, tc := range map[string]struct {
		selected  string
		connected bool
		want      map[string]string
	}{
		"the member's node":                        {cr.NodeName(), true, map[string]string{v1alpha1.AnnotationPlacedIn: leftID}},
		"another member's node":                    {"kosmos-cluster39", true, map[string]string{v1alpha1.AnnotationPlacedIn: leftID, route.AnnSelectedNode: "kosmos-cluster39"}},
		"the node of a lost member":                {cr.NodeName(), false, map[string]string{}},
		"another member's node, the first is lost": {"kosmos-cluster39", false, map[string]string{route.AnnSelectedNode: "kosmos-cluster39"}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: leftID, route.AnnSelectedNode: tc.selected}}}
			if diff := cmp.Diff(tc.want, withdrawnClaim(claim, cr, tc.connected).Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithdrawing(t *testing.T) {
	claims := []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}}
	promises := []corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pvc-mock-1"}}}
	for want, l := range map[string]remainingObjects{
		"withdrawing 1 claim (shop/data)":                            {unboundClaims: claims},
		"withdrawing 1 promise (pvc-mock-1)":                         {promises: promises},
		"withdrawing 1 claim (shop/data) and 1 promise (pvc-mock-1)": {unboundClaims: claims, promises: promises},
		"withdrawing 1 promise (pvc-mock-1). Xylem deletes nothing in the member until an admin confirms the restore that condition Connected reports": {promises: promises, destructionSuspended: true},
	} {
		if got := l.describeWithdrawal(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

var errRecord = errors.New("the record was written")

// recording rejects the creation of the record, so that tests detect it.
type recording struct{ client.Client }

func (recording) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errRecord
}

// absent is a host without a record.
type absent struct{ client.Reader }

func (absent) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// A PV that is being deleted disappears with Xylem's finalizer, so its disk is recorded first.
func TestReleasedVolumesAreRecorded(t *testing.T) {
	for name, tc := range map[string]struct {
		deleting, forced bool
		want             error
	}{
		"it stays":                           {},
		"it is being deleted":                {deleting: true, want: errRecord},
		"an admin forces the deregistration": {forced: true, want: errRecord},
	} {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "uid"}}
			if tc.deleting {
				pv.DeletionTimestamp = &metav1.Time{}
			}
			cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38"}}
			cr.Status.ClusterID = leftID
			r := &Deregisterer{Client: recording{}, Records: &fencing.HostRecords{Live: absent{}, Namespace: "xylem-system", Clock: clock.RealClock{}}}
			if err := r.recordReleasedVolume(t.Context(), cr, pv, tc.forced); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}
