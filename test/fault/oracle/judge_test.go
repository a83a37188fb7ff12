package oracle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

const (
	host, one = "host", "cluster38"
	disk      = "pvc-" + leafUID
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// second returns the time n seconds after the start.
func second(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }

func seen(cluster string, n int, obj client.Object) Sighting {
	return Sighting{At: second(n), Cluster: cluster, Object: obj}
}

func ended(s Sighting) Sighting { s.Gone = true; return s }

func rootClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: run, Name: "data", UID: rootUID}}
}

func leafClaimObject() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: run, Name: "data", UID: leafUID, Labels: map[string]string{v1alpha1.LabelHost: hostID}}}
}

func leafClaimOf(root string) *corev1.PersistentVolumeClaim {
	claim := leafClaimObject()
	claim.CreationTimestamp = metav1.Time{Time: second(1)}
	claim.Annotations = map[string]string{v1alpha1.AnnotationRootUID: root}
	return claim
}

func boundTo(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim.Spec.VolumeName = disk
	return claim
}

func placed(in string) *corev1.PersistentVolumeClaim {
	claim := rootClaim()
	claim.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: in}
	return claim
}

type volumeOption = func(*corev1.PersistentVolume)

func leafVolume(options ...volumeOption) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: disk}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: run, Name: "data", UID: leafUID}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	for _, option := range options {
		option(pv)
	}
	return pv
}

func stamped(pv *corev1.PersistentVolume) {
	pv.Labels = map[string]string{v1alpha1.LabelHost: hostID}
	pv.Annotations = map[string]string{v1alpha1.AnnotationRootUID: rootUID, v1alpha1.AnnotationReclaimPolicy: "Delete"}
}

func retain(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

func memberRetains(pv *corev1.PersistentVolume) {
	pv.Annotations[v1alpha1.AnnotationReclaimPolicy] = "Retain"
}

func hostVolume(phase corev1.PersistentVolumePhase, options ...volumeOption) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: disk, Labels: map[string]string{v1alpha1.LabelClusterID: oneID}}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{VolumeHandle: oneID + "/" + disk}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: run, Name: "data", UID: rootUID}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	pv.Status.Phase = phase
	for _, option := range options {
		option(pv)
	}
	return pv
}

func handle(h string) volumeOption {
	return func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = h }
}

func called(method string, n int) ledger.Entry {
	return ledger.Entry{Time: second(n), Method: method, Code: ledger.OK, VolumeID: "disk", ClaimNamespace: run, ClaimName: "data", PVName: disk}
}

func books(entries ...ledger.Entry) map[string]*ledger.Ledger {
	return map[string]*ledger.Ledger{one: {Entries: entries}}
}

func requests(rs ...controlplane.Request) map[string]controlplane.Requests {
	return map[string]controlplane.Requests{one: rs}
}

// life returns the correct history of a volume until it is in use.
func life() []Sighting {
	return []Sighting{
		seen(host, 0, rootClaim()), seen(one, 1, leafClaimObject()), seen(one, 2, leafVolume()), seen(one, 3, leafVolume(stamped, retain)),
		seen(host, 4, hostVolume(corev1.VolumeBound)),
	}
}

// scratch returns the history of a claim with a fulfilled promise. The promise is marked as unused
// and, 10 s later, as releasing, and then its disk is destroyed. change can replace an annotation
// (key and value), or remove the promise's parameters ("").
func scratch(pod Sighting, change ...string) []Sighting {
	promise := func(annotations map[string]string) *corev1.PersistentVolume {
		pv := hostVolume(corev1.VolumeBound)
		pv.Labels[v1alpha1.LabelCluster] = one
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.PromiseDriverName, VolumeHandle: "mock-vol-" + rootUID, VolumeAttributes: map[string]string{
			v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused, v1alpha1.ParameterReleaseGrace: "10s",
		}}
		pv.Annotations = map[string]string{v1alpha1.AnnotationVolume: oneID + "/" + disk, v1alpha1.AttributeLeafUID: "leaf", v1alpha1.AnnotationConsumer: "c"}
		for key, value := range annotations {
			pv.Annotations[key] = value
		}
		if len(change) > 0 && change[0] == "" {
			pv.Spec.CSI.VolumeAttributes = nil
		} else if len(change) > 0 {
			pv.Annotations[change[0]] = change[1]
		}
		return pv
	}
	since := map[string]string{v1alpha1.AnnotationUnusedSince: second(5).Format(time.RFC3339)}
	marked := map[string]string{v1alpha1.AnnotationUnusedSince: second(5).Format(time.RFC3339), v1alpha1.AnnotationReleasing: "leaf"}
	return []Sighting{
		seen(host, 0, rootClaim()), pod, seen(one, 1, leafClaimObject()), seen(one, 2, leafVolume()), seen(one, 3, leafVolume(stamped, retain)),
		seen(host, 4, promise(nil)), seen(host, 6, promise(since)), seen(host, 16, promise(marked)), seen(one, 17, leafVolume(stamped)),
	}
}

func consumer(n int, phase corev1.PodPhase) Sighting {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: run, Name: "app", UID: "pod"}, Status: corev1.PodStatus{Phase: phase}}
	pod.Spec.NodeName = v1alpha1.DefaultNodeNamePrefix + one
	pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	return seen(host, n, pod)
}

func then(more ...Sighting) []Sighting { return append(life(), more...) }

func TestJudge(t *testing.T) {
	rootGone := ended(seen(host, 5, rootClaim()))
	released := seen(host, 6, hostVolume(corev1.VolumeReleased))
	flipped := seen(one, 7, leafVolume(stamped))
	patchOf := func(name string) controlplane.Request {
		return controlplane.Request{Verb: "patch", Resource: "persistentvolumes", Name: name, Code: 200}
	}
	foreign := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	for name, tt := range map[string]struct {
		evidence Evidence
		want     []string // invariant and oracle
	}{
		"a volume in use": {Evidence{
			History: life(), Live: life(), Ledgers: books(called(ledger.CreateVolume, 2)),
		}, nil},
		"I1: a disk without an owner that is not reported": {Evidence{
			History: life(), Ledgers: books(called(ledger.CreateVolume, 2)),
		}, []string{"I1 accounted"}},
		"I1: a deleted root's disk": {Evidence{
			History: life(), Live: []Sighting{seen(one, 9, leafVolume(stamped, retain))}, Ledgers: books(called(ledger.CreateVolume, 2)),
		}, []string{"I1 accounted"}},
		"a disk without an owner that is reported": {Evidence{
			History: life(), Ledgers: books(called(ledger.CreateVolume, 2)), Orphaned: map[string]int{one: 1},
		}, nil},
		"a retained disk": {Evidence{
			History: life(), Ledgers: books(called(ledger.CreateVolume, 2)),
			Live: []Sighting{seen(one, 9, leafVolume(stamped, retain)), seen(host, 9, hostVolume(corev1.VolumeReleased, retain))},
		}, nil},
		"a volume destroyed with evidence": {Evidence{
			History: then(rootGone, released, flipped), Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 8)),
		}, nil},
		"I2: a volume destroyed while its root claim exists": {Evidence{
			History: then(released, flipped), Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 8)),
		}, []string{"I2 ledger", "I2 policy"}},
		"a volume destroyed after its reclaim failed in the host": {Evidence{
			History: then(rootGone, seen(host, 6, hostVolume(corev1.VolumeFailed)), flipped), Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 8)),
		}, nil},
		"I2: a volume destroyed although the host retains it": {Evidence{
			History: then(rootGone, seen(host, 6, hostVolume(corev1.VolumeReleased, retain)), flipped),
			Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 8)),
		}, []string{"I2 ledger", "I2 policy"}},
		"I2: a volume destroyed although the member retains it": {Evidence{
			History: then(rootGone, released, seen(one, 7, leafVolume(stamped, memberRetains))),
			Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 8)),
		}, []string{"I2 ledger", "I2 policy"}},
		"I2: a volume set to policy Delete too early, but not destroyed": {Evidence{
			History: then(flipped), Live: life(), Ledgers: books(called(ledger.CreateVolume, 2)),
		}, []string{"I2 policy"}},
		"a volume never mirrored, and withdrawn": {Evidence{
			History: []Sighting{seen(host, 0, rootClaim()), ended(seen(one, 3, leafClaimObject())), seen(one, 4, leafVolume())},
			Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 8)),
		}, nil},
		"I2: a volume never mirrored, and destroyed while its leaf claim exists": {Evidence{
			History: []Sighting{seen(host, 0, rootClaim()), seen(one, 1, leafClaimObject()), seen(one, 4, leafVolume())},
			Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 8)),
		}, []string{"I2 ledger"}},
		"I2: a volume never mirrored, but bound, and destroyed while its root exists": {Evidence{
			History: []Sighting{seen(host, 0, placed(oneID)), seen(one, 1, boundTo(leafClaimOf(rootUID))), seen(one, 4, leafVolume()), ended(seen(one, 6, boundTo(leafClaimOf(rootUID))))},
			Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 8)),
		}, []string{"I2 ledger"}},
		"a volume never mirrored, and withdrawn before it was bound": {Evidence{
			History: []Sighting{seen(host, 0, placed(oneID)), seen(one, 1, leafClaimOf(rootUID)), ended(seen(one, 6, leafClaimOf(rootUID)))},
			Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 8)),
		}, nil},
		"a disk of an earlier run": {Evidence{
			Began: second(9), Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 8)),
		}, nil},
		"I3: two volumes mirrored for one claim": {Evidence{
			History: then(seen(host, 9, hostVolume(corev1.VolumeBound, handle("other/pvc")))), Live: life(), Ledgers: books(),
		}, []string{"I3 mirrored"}},
		"a disk that was destroyed after its last Pod had ended": {Evidence{
			History: scratch(consumer(0, corev1.PodSucceeded)), Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 20)),
		}, nil},
		"a disk that was destroyed after its last Pod was deleted": {Evidence{
			History: scratch(ended(consumer(5, corev1.PodRunning))), Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 20)),
		}, nil},
		"I2: a disk that was destroyed while a Pod used it": {Evidence{
			History: scratch(consumer(0, corev1.PodRunning)), Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 20)),
		}, []string{"I2 ledger", "I2 policy"}},
		"I2: a disk that was destroyed before the grace period was over": {Evidence{
			History: scratch(consumer(0, corev1.PodSucceeded), v1alpha1.AnnotationUnusedSince, second(16).Format(time.RFC3339)),
			Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 20)),
		}, []string{"I2 ledger", "I2 policy"}},
		"I2: a disk that was destroyed without being marked as releasing": {Evidence{
			History: scratch(consumer(0, corev1.PodSucceeded), v1alpha1.AnnotationReleasing, ""), Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 20)),
		}, []string{"I2 ledger", "I2 policy"}},
		"I2: a disk that was destroyed although no consumer was recorded": {Evidence{
			History: scratch(consumer(0, corev1.PodSucceeded), v1alpha1.AnnotationConsumer, ""), Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 20)),
		}, []string{"I2 ledger", "I2 policy"}},
		"I2: a disk that was destroyed before its claim, with release OnClaimDeletion": {Evidence{
			History: scratch(consumer(0, corev1.PodSucceeded), "", ""), Ledgers: books(called(ledger.CreateVolume, 2), called(ledger.DeleteVolume, 20)),
		}, []string{"I2 ledger", "I2 policy"}},
		"I3: a leaf claim of a root that is not placed": {Evidence{
			History: []Sighting{seen(host, 1, rootClaim()), seen(one, 2, leafClaimOf(rootUID)), seen(host, 4, placed(oneID))},
		}, []string{"I3 placed"}},
		"a leaf claim in the member in which its root is placed": {Evidence{
			History: []Sighting{seen(host, 1, placed(oneID)), seen(one, 2, leafClaimOf(rootUID))},
		}, nil},
		"a leaf claim in a member from which its root was later released": {Evidence{
			History: []Sighting{seen(host, 1, placed(oneID)), seen(host, 2, rootClaim()), seen(one, 2, leafClaimOf(rootUID))},
		}, nil},
		"I3: a leaf claim in a member from which its root had been released": {Evidence{
			History: []Sighting{seen(host, 1, placed(oneID)), seen(host, 2, rootClaim()), seen(one, 4, leafClaimOf(rootUID))},
		}, []string{"I3 placed"}},
		"a leaf claim of a root that was placed before the first observation": {Evidence{
			History: []Sighting{seen(one, 2, leafClaimOf(rootUID))},
		}, nil},
		"a leaf claim of a root that a restore of the host brought back": {Evidence{
			Restored: &Restore{Cluster: host, Began: second(2), At: second(3), Confirmed: second(9)},
			History:  []Sighting{seen(host, 1, rootClaim()), seen(one, 4, leafClaimOf(rootUID))},
		}, nil},
		"I3: a leaf claim of a root that was not placed after the host's restore": {Evidence{
			Restored: &Restore{Cluster: host, Began: second(2), At: second(3), Confirmed: second(9)},
			History:  []Sighting{seen(host, 4, rootClaim()), seen(one, 5, leafClaimOf(rootUID))},
		}, []string{"I3 placed"}},
		"I3: a leaf claim of a root that is not placed, after a member's restore": {Evidence{
			Restored: &Restore{Cluster: one, Began: second(2), At: second(3), Confirmed: second(9)},
			History:  []Sighting{seen(host, 1, rootClaim()), seen(one, 4, leafClaimOf(rootUID))},
		}, []string{"I3 placed"}},
		"I3: a placement moved directly from another member": {Evidence{
			History: []Sighting{seen(host, 1, placed("another")), seen(host, 2, placed(oneID))},
		}, []string{"I3 placed"}},
		"a restore of the host changed the placement": {Evidence{
			Restored: &Restore{Cluster: host, Began: second(2), At: second(3), Confirmed: second(9)},
			History:  []Sighting{seen(host, 1, placed("another")), seen(host, 4, placed(oneID))},
		}, nil},
		"I3: a placement moved directly from another member, after a member's restore": {Evidence{
			Restored: &Restore{Cluster: one, Began: second(2), At: second(3), Confirmed: second(9)},
			History:  []Sighting{seen(host, 1, placed("another")), seen(host, 4, placed(oneID))},
		}, []string{"I3 placed"}},
		"a placement after another member released the claim": {Evidence{
			History: []Sighting{seen(host, 1, placed("another")), seen(host, 2, rootClaim()), seen(host, 3, placed(oneID))},
		}, nil},
		"I3: two leaf volumes of one root are left": {Evidence{
			Live: append(life(), seen("cluster39", 9, leafVolume(stamped))), Ledgers: books(),
		}, []string{"I3 surviving"}},
		"a second disk that a restore brought back and that is reported": {Evidence{
			Restored: &Restore{Cluster: "cluster39", Began: second(2), At: second(3), Confirmed: second(9)}, Orphaned: map[string]int{"cluster39": 1},
			Live: append(life(), seen("cluster39", 9, leafVolume(stamped))), Ledgers: books(),
		}, nil},
		"I3: a second disk that a restore brought back and that is not reported": {Evidence{
			Restored: &Restore{Cluster: "cluster39", Began: second(2), At: second(3), Confirmed: second(9)},
			Live:     append(life(), seen("cluster39", 9, leafVolume(stamped))), Ledgers: books(),
		}, []string{"I3 surviving"}},
		"I4: a canary was changed": {Evidence{
			Canaries: []Canary{{Cluster: one, Object: "x", Before: "1", After: "1"}, {Cluster: one, Object: "y", Before: "1", After: "2"}},
		}, []string{"I4 canary"}},
		"I4: a write to a foreign object": {Evidence{
			History: then(seen(one, 1, foreign)), Live: life(), Requests: requests(patchOf("foreign")),
		}, []string{"I4 audit"}},
		"a write to a leaf, and a rejected write": {Evidence{
			History: then(seen(one, 1, foreign)), Live: life(),
			Requests: requests(patchOf(disk), controlplane.Request{Verb: "patch", Resource: "persistentvolumes", Name: "foreign", Code: 409}),
		}, nil},
		"I5: writes continue": {Evidence{
			Quiet: requests(controlplane.Request{Verb: "patch", Resource: "pods/status", Namespace: run, Name: "app", Code: 200}),
		}, []string{"I5 audit"}},
		"writes to Leases, totals and other runs' objects do not count": {Evidence{Quiet: requests(
			controlplane.Request{Verb: "patch", Resource: "leases"},
			controlplane.Request{Verb: "patch", Resource: "nodes/status"},
			controlplane.Request{Verb: "delete", Resource: "configmaps", Namespace: "fault-other"},
		)}, nil},
		"I5: a strict run counts writes to totals": {Evidence{
			Strict: true, Quiet: requests(controlplane.Request{Verb: "patch", Resource: "nodes/status"}, controlplane.Request{Verb: "patch", Resource: "leases"}),
		}, []string{"I5 audit"}},
		"I6: a different end state": {Evidence{
			Reference: []string{"a", "b"}, State: []string{"a", "c"},
		}, []string{"I6 end"}},
		"I6: the run does not settle": {Evidence{
			Unsettled: "the Pod", Reference: []string{"a"},
		}, []string{"I6 settled"}},
		"I6: a crash": {Evidence{Panics: []string{"panic: x"}}, []string{"I6 panic"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := tt.evidence
			e.Namespace, e.Host, e.IDs = run, host, map[string]string{host: hostID, one: oneID, "cluster39": "other"}
			var got []string
			for _, v := range Judge(e) {
				got = append(got, v.Invariant+" "+v.Oracle)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s\n%v", diff, Judge(e))
			}
		})
	}
}

func TestLeafClaimOfVolume(t *testing.T) {
	if got := leafClaim(disk); got != types.UID(leafUID) {
		t.Errorf("leafClaim(%q) = %q, want %q", disk, got, leafUID)
	}
}
