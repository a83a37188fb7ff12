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
	"github.com/xylem-io/xylem/internal/member/hostrecord"
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
	const retain, drain = v1alpha1.DeregistrationRetain, v1alpha1.DeregistrationDrain

	for name, tc := range map[string]struct {
		leaving leaving
		want    step
	}{
		"no objects in the member":                                                    {leaving{connected: true}, finish},
		"no objects in the host, but leaf Pods may still run (I6)":                    {leaving{connecting: true}, waitForConnection},
		"Pods run in a member that may be reachable, forced (I2)":                     {leaving{connecting: true, forced: true, node: true, pods: running}, waitForConnection},
		"volumes in a member that may be reachable (I2)":                              {leaving{connecting: true, node: true, volumes: held}, waitForConnection},
		"no objects in the member, and the member is unreachable":                     {leaving{}, finish},
		"Pods run in the member, not confirmed":                                       {leaving{connected: true, node: true, pods: running}, waitForConfirmation},
		"Pods are pending in the member, not confirmed":                               {leaving{connected: true, node: true, pods: pending}, waitForConfirmation},
		"Pods run in the member, confirmed":                                           {leaving{connected: true, confirmed: true, node: true, pods: running}, evictPods},
		"all Pods in the member are ending: no confirmation needed":                   {leaving{connected: true, node: true, pods: ending}, evictPods},
		"Pods run in the member, and the member is unreachable (I2)":                  {leaving{confirmed: true, node: true, pods: running}, waitForMember},
		"Pods run in the connected member, forced but not confirmed":                  {leaving{connected: true, forced: true, node: true, pods: running}, waitForConfirmation},
		"Pods run in the unreachable member, forced":                                  {leaving{forced: true, node: true, pods: running}, evictPods},
		"Pods run in the unreachable member, forced and confirmed":                    {leaving{forced: true, confirmed: true, node: true, pods: running}, evictPods},
		"Pods of a deleted Node run in the member, not confirmed":                     {leaving{connected: true, pods: running}, waitForConfirmation},
		"leaf Pods run in the member although their roots were deleted with the Node": {leaving{connected: true, leaves: []string{"shop/web-1"}, volumes: held}, waitForLeaves},
		"leaf Pods run in the member, and the deregistration is forced":               {leaving{connected: true, forced: true, leaves: []string{"shop/web-1"}, volumes: held}, releaseVolumes},
		"a claim without a volume":                                                    {leaving{connected: true, node: true, unbound: claim}, withdrawClaims},
		"a claim without a volume, and the member is unreachable (I1)":                {leaving{node: true, unbound: claim}, waitForMember},
		"a claim without a volume, the member is unreachable, forced":                 {leaving{forced: true, node: true, unbound: claim}, withdrawClaims},
		"a promise without a disk":                                                    {leaving{connected: true, node: true, promises: held}, withdrawClaims},
		"a promise without a disk, policy Drain":                                      {leaving{connected: true, policy: drain, node: true, promises: held}, withdrawClaims},
		"a promise without a disk, and the member is unreachable (I1)":                {leaving{node: true, promises: held}, waitForMember},
		"a promise without a disk, the member is unreachable, forced":                 {leaving{forced: true, node: true, promises: held}, withdrawClaims},
		"copies of shared volumes":                                                    {leaving{connected: true, node: true, copied: held}, releaseVolumes},
		"copies of shared volumes, and the member is unreachable (I2)":                {leaving{node: true, copied: held}, waitForMember},
		"copies of shared volumes, the member is unreachable, forced":                 {leaving{forced: true, node: true, copied: held}, releaseVolumes},
		"copies of shared volumes, and the link has ended":                            {leaving{unlinked: true, node: true, copied: held}, releaseVolumes},
		"Pods are evicted before claims are withdrawn":                                {leaving{connected: true, confirmed: true, pods: running, unbound: claim}, evictPods},
		"Retain: bound claims are kept, their volumes are released":                   {leaving{connected: true, policy: retain, node: true, bound: claim, volumes: held}, releaseVolumes},
		"Retain: the member may be unreachable":                                       {leaving{policy: retain, node: true, bound: claim, volumes: held}, releaseVolumes},
		"no policy means Retain":                                                      {leaving{connected: true, node: true, bound: claim, volumes: held}, releaseVolumes},
		"Drain waits for bound claims (I2)":                                           {leaving{connected: true, policy: drain, node: true, bound: claim, volumes: held}, waitForClaims},
		"Drain waits for volumes without claims (I1)":                                 {leaving{connected: true, policy: drain, node: true, volumes: held}, waitForClaims},
		"Drain, and the member is unreachable (I1)":                                   {leaving{policy: drain, node: true, bound: claim, volumes: held}, waitForMember},
		"Drain, the member is unreachable, forced: volumes are released, not destroyed (I2)": {
			leaving{policy: drain, forced: true, node: true, bound: claim, volumes: held}, releaseVolumes},
		"Drain, no claims or volumes left":           {leaving{connected: true, policy: drain, node: true}, waitForNode},
		"volumes are released, the node exists":      {leaving{policy: retain, node: true, bound: claim, volumes: released}, waitForNode},
		"volumes are released, the node was deleted": {leaving{policy: retain, bound: claim, volumes: released}, finish},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.leaving.next(); got != tc.want {
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
		pv := hostpv.PromiseFor(claim, &storagev1.StorageClass{Parameters: map[string]string{v1alpha1.ParameterRelease: release}})
		leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name, UID: "leaf"}}
		pv = hostpv.Fulfil(hostpv.WithMember(pv, m, nil), leaf, leafPolicy, m)
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
			l := leaving{connected: tc.connected, connecting: tc.connecting, forced: tc.forced, volumes: []corev1.PersistentVolume{
				volume("data", v1alpha1.ReleaseOnClaimDeletion, corev1.PersistentVolumeReclaimDelete), volume("scratch", v1alpha1.ReleaseWhenUnused, corev1.PersistentVolumeReclaimDelete),
				volume("kept", v1alpha1.ReleaseWhenUnused, corev1.PersistentVolumeReclaimRetain),
			}}
			l.recall()
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
		l    leaving
		want string
	}{
		"a claim and its volume": {
			leaving{bound: []corev1.PersistentVolumeClaim{claim}, volumes: []corev1.PersistentVolume{volume}},
			"1 claim (ns/data) and 1 volume (pvc-1)",
		},
		"a retained volume without a claim": {leaving{volumes: []corev1.PersistentVolume{volume}}, "1 volume (pvc-1)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.l.left(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestRemaining(t *testing.T) {
	one := []corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}}
	claims := make([]corev1.PersistentVolumeClaim, 1)
	for name, tc := range map[string]struct {
		l    leaving
		want string
	}{
		"only copies": {leaving{copied: append(one, one...)}, "2 copies of shared volumes"},
		"every kind except snapshots": {
			leaving{pods: []corev1.Pod{pod("a", corev1.PodRunning, false)}, unbound: claims, bound: claims, promises: one, volumes: one, copied: one},
			"1 Pod, 2 claims, 1 promise without a disk, 1 volume, 1 copy of shared volumes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.l.remaining(); got != tc.want {
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
			if diff := cmp.Diff(tc.want, withdrawn(claim, cr, tc.connected).Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithdrawing(t *testing.T) {
	claims := []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}}
	promises := []corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pvc-mock-1"}}}
	for want, l := range map[string]leaving{
		"withdrawing 1 claim (shop/data)":                            {unbound: claims},
		"withdrawing 1 promise (pvc-mock-1)":                         {promises: promises},
		"withdrawing 1 claim (shop/data) and 1 promise (pvc-mock-1)": {unbound: claims, promises: promises},
		"withdrawing 1 promise (pvc-mock-1). Xylem deletes nothing in the member until an admin confirms the restore that condition Connected reports": {promises: promises, suspended: true},
	} {
		if got := l.withdrawing(); got != want {
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
			r := &Leaver{Client: recording{}, Records: &hostrecord.Records{Live: absent{}, Namespace: "xylem-system", Clock: clock.RealClock{}}}
			if err := r.recordReleased(t.Context(), cr, pv, tc.forced); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}
