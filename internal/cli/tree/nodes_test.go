package tree

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

const (
	hostID    = "host-id"
	clusterID = "3f0c2a7e"
	node      = "kosmos-cluster38"
	leafUID   = types.UID("leaf-pv-uid")
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func metaOf(name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid, CreationTimestamp: ago(3 * time.Minute)}
}

func registration(status metav1.ConditionStatus, reason, message string) v1alpha1.ClusterRegistration {
	return v1alpha1.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster38", CreationTimestamp: ago(50 * time.Hour)},
		Status: v1alpha1.ClusterRegistrationStatus{
			ClusterID: clusterID, KubernetesVersion: "v1.36.3",
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionConnected, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(time.Minute)},
				{Type: v1alpha1.ConditionVolumesAccounted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOrphanedVolumes, Message: "unrelated"},
			},
		},
	}
}

func claim(phase corev1.PersistentVolumeClaimPhase, volume string, conditions ...corev1.PersistentVolumeClaimCondition) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metaOf("data", "root-uid")}
	c.Spec.StorageClassName, c.Spec.VolumeName = new("fast"), volume
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	c.Status.Phase, c.Status.Conditions = phase, conditions
	if phase == corev1.ClaimBound {
		c.Status.Capacity = c.Spec.Resources.Requests
		c.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: clusterID}
	}
	return c
}

func says(kind corev1.PersistentVolumeClaimConditionType, status corev1.ConditionStatus, reason, message string) corev1.PersistentVolumeClaimCondition {
	return corev1.PersistentVolumeClaimCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(30 * time.Second)}
}

func hostClass(provisioner string, parameters map[string]string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: provisioner, Parameters: parameters,
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer), ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimDelete),
	}
}

var here = mirror.Member{Registration: "cluster38", ClusterID: clusterID, NodeName: node, HostID: hostID}

func leafVolume() *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-0d1c", UID: leafUID, CreationTimestamp: ago(2 * time.Minute)}}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-0af31"}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	pv.Status.Phase = corev1.VolumeBound
	return pv
}

// mirrored returns the host PV that represents leafVolume.
func mirrored(phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
	pv := hostpv.TranslateVolume(leafVolume(), claim(corev1.ClaimPending, ""), corev1.PersistentVolumeReclaimDelete, here)
	pv.Name, pv.CreationTimestamp, pv.Status.Phase = "pvc-0d1c", ago(2*time.Minute), phase
	return pv
}

func promised(parameters map[string]string) *corev1.PersistentVolume {
	pv := hostpv.NewPromiseFor(claim(corev1.ClaimPending, ""), hostClass(v1alpha1.ProvisionerName, parameters))
	pv.CreationTimestamp, pv.Status.Phase = ago(2*time.Minute), corev1.VolumeBound
	return pv
}

func leafClaim38(phase corev1.PersistentVolumeClaimPhase, volume string) *corev1.PersistentVolumeClaim {
	leaf := claim(phase, volume)
	leaf.UID, leaf.Annotations = "leaf-uid", nil
	leaf.Spec.StorageClassName = new("gp3")
	mirror.OriginForRoot(hostID, claim(phase, "")).StampLeaf(leaf)
	return leaf
}

func pod(phase corev1.PodPhase, on string, conditions ...corev1.PodCondition) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metaOf("web-0", "pod-uid")}
	p.Spec.NodeName, p.Status.Phase, p.Status.Conditions = on, phase, conditions
	return p
}

func isPushed(status corev1.ConditionStatus, reason, message string) corev1.PodCondition {
	return corev1.PodCondition{Type: v1alpha1.PodPushed, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(time.Minute)}
}

func leafPod38() *corev1.Pod {
	leaf := pod(corev1.PodRunning, "ip-10-0-0-1")
	mirror.OriginForRoot(hostID, pod("", "")).StampLeaf(leaf)
	return leaf
}

func event(kind, reason, message, reporter string, d time.Duration, times int32) corev1.Event {
	return corev1.Event{Type: kind, Reason: reason, Message: message, ReportingController: reporter, Count: times, LastTimestamp: ago(d)}
}

func connectedMember() []v1alpha1.ClusterRegistration {
	return []v1alpha1.ClusterRegistration{registration(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")}
}

// cases returns the facts for the golden files.
func cases() map[string]inspect.Facts {
	key := types.NamespacedName{Namespace: "shop", Name: "data"}
	xylem := hostClass(v1alpha1.ProvisionerName, nil)
	running := inspect.PodFacts{Pod: pod(corev1.PodRunning, node, isPushed(corev1.ConditionTrue, "Pushed", "leaf-pod-uid"))}
	read := map[string]bool{clusterID: true}
	fulfilled := func(parameters map[string]string) *corev1.PersistentVolume {
		return hostpv.FulfillPromise(hostpv.PromiseWithMember(promised(parameters), here, pod("", "")), leafVolume(), corev1.PersistentVolumeReclaimDelete, here)
	}
	tree := func(registrations []v1alpha1.ClusterRegistration, c inspect.ClaimFacts) inspect.Facts {
		c.Key = key
		return inspect.Facts{Registrations: registrations, Claims: []inspect.ClaimFacts{c}}
	}
	all := map[string]inspect.Facts{
		"bound": tree(connectedMember(), inspect.ClaimFacts{Claim: claim(corev1.ClaimBound, "pvc-0d1c"), Class: xylem, Volume: mirrored(corev1.VolumeBound), Pods: []inspect.PodFacts{running},
			Events: []corev1.Event{event("Normal", "VolumeMirrored", `member "cluster38" has provisioned volume "pvc-0d1c"`, "xylem", time.Minute, 1), event("Normal", "WaitForFirstConsumer", "waiting", "persistentvolume-controller", time.Minute, 3)}}),
		"pending-no-pod": tree(connectedMember(), inspect.ClaimFacts{Claim: claim(corev1.ClaimPending, ""), Class: xylem,
			Events: []corev1.Event{event("Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding", "persistentvolume-controller", time.Second, 7)}}),
		"promise-unused": tree(connectedMember(), inspect.ClaimFacts{Class: xylem, Volume: promised(nil),
			Claim: withoutPlace(claim(corev1.ClaimBound, promised(nil).Name, says(v1alpha1.ClaimPromise, corev1.ConditionFalse, v1alpha1.ReasonPromised, "there is no disk yet: the claim's first Pod determines which member provisions it")))}),
		"promise-broken": tree(connectedMember(), inspect.ClaimFacts{Class: xylem, Volume: hostpv.PromiseWithMember(promised(nil), here, pod("", "")), Pods: []inspect.PodFacts{
			{Pod: pod(corev1.PodPending, node, isPushed(corev1.ConditionFalse, "VolumeAwaited", `claim "data": member "cluster38" has no StorageClass "gone"`))}},
			Claim: claim(corev1.ClaimBound, promised(nil).Name, says(v1alpha1.ClaimPlaced, corev1.ConditionFalse, "MemberClassNotFound", `member "cluster38" has no StorageClass "gone"`),
				says(v1alpha1.ClaimPromise, corev1.ConditionFalse, v1alpha1.ReasonBroken, `MemberClassNotFound: member "cluster38" has no StorageClass "gone"`))}),
		"promise-when-unused": tree(connectedMember(), inspect.ClaimFacts{Class: xylem, Volume: fulfilled(map[string]string{v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused}),
			Claim: claim(corev1.ClaimBound, promised(nil).Name, says(v1alpha1.ClaimPromise, corev1.ConditionTrue, v1alpha1.ReasonFulfilled, "volume pvc-0d1c in member cluster38: driver ebs.csi.aws.com, handle vol-0af31"),
				says(corev1.PersistentVolumeClaimUnused, corev1.ConditionFalse, "PodUsingPVC", "A pod is currently referencing this PVC"))}),
		"member-lost": tree([]v1alpha1.ClusterRegistration{registration(metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "dial tcp 10.1.2.3:6443: i/o timeout")},
			inspect.ClaimFacts{Claim: claim(corev1.ClaimBound, "pvc-0d1c"), Class: xylem, Volume: mirrored(corev1.VolumeBound), Pods: []inspect.PodFacts{running}}),
		"deregistered": tree(nil, inspect.ClaimFacts{Claim: claim(corev1.ClaimBound, "pvc-0d1c"), Class: xylem, Volume: with(mirrored(corev1.VolumeBound), v1alpha1.AnnotationClusterGone, "cluster38")}),
		"attached": tree(connectedMember(), inspect.ClaimFacts{Class: xylem, Volume: mirrored(corev1.VolumeBound), Pods: []inspect.PodFacts{running},
			Claim: claim(corev1.ClaimBound, "pvc-0d1c", says(v1alpha1.ClaimAttached, corev1.ConditionTrue, v1alpha1.ReasonAttached, `attached to node "n1" of member "cluster38" since 2026-11-21T11:59:30Z`))}),
		"attach-failed": tree(connectedMember(), inspect.ClaimFacts{Class: xylem, Volume: mirrored(corev1.VolumeBound), Pods: []inspect.PodFacts{{Pod: pod(corev1.PodPending, node, isPushed(corev1.ConditionTrue, "Pushed", "leaf-pod-uid"))}},
			Claim: claim(corev1.ClaimBound, "pvc-0d1c", says(v1alpha1.ClaimAttached, corev1.ConditionFalse, v1alpha1.ReasonAttachFailed, `member "cluster38" cannot attach the volume to node "n1": the cable is loose`))}),
		"detached": tree(connectedMember(), inspect.ClaimFacts{Class: xylem, Volume: mirrored(corev1.VolumeBound),
			Claim: claim(corev1.ClaimBound, "pvc-0d1c", says(v1alpha1.ClaimAttached, corev1.ConditionFalse, v1alpha1.ReasonDetached, `not attached to any node of member "cluster38": no Pod there needs the volume`))}),
		"unused": tree(connectedMember(), inspect.ClaimFacts{Class: xylem, Volume: mirrored(corev1.VolumeBound),
			Claim: claim(corev1.ClaimBound, "pvc-0d1c", says(corev1.PersistentVolumeClaimUnused, corev1.ConditionTrue, "NoPodsUsingPVC", "No pods are currently referencing this PVC"))}),
		"promise-without-claim": tree(connectedMember(), inspect.ClaimFacts{Earlier: []corev1.PersistentVolume{*hostpv.PromiseWithMember(promised(nil), here, pod("", ""))}}),
		"released":              tree(connectedMember(), inspect.ClaimFacts{Earlier: []corev1.PersistentVolume{*mirrored(corev1.VolumeReleased)}}),
		"volume-gone":           tree(connectedMember(), inspect.ClaimFacts{Claim: claim(corev1.ClaimLost, "pvc-0d1c"), Class: xylem}),
		"not-ours":              tree(connectedMember(), inspect.ClaimFacts{Claim: withoutPlace(claim(corev1.ClaimBound, "pvc-9")), Class: hostClass("rancher.io/local-path", nil)}),
	}
	pending := tree(connectedMember(), inspect.ClaimFacts{Claim: withPlace(claim(corev1.ClaimPending, "", says(v1alpha1.ClaimPlaced, corev1.ConditionFalse, "OutOfSpace",
		"member cluster38: claim data: failed to provision volume with StorageClass \"gp3\": rpc error: code = ResourceExhausted desc = no space left in zone a. Xylem tries another member after 1m0s"))), Class: xylem,
		Leaf: leafClaim38(corev1.ClaimPending, ""), LeafKnown: true, LeafVolumeKnown: true,
		LeafEvents: []corev1.Event{event("Warning", "ProvisioningFailed", "rpc error: code = ResourceExhausted desc = no space left in zone a", "ebs.csi.aws.com", 2*time.Second, 4)},
		Pods:       []inspect.PodFacts{{Pod: pod(corev1.PodPending, "", corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"})}}})
	pending.Members = read
	all["pending-live"] = pending

	live := all["bound"]
	live.Claims = append([]inspect.ClaimFacts(nil), live.Claims...)
	c := &live.Claims[0]
	c.Leaf, c.LeafKnown, c.LeafVolume, c.LeafVolumeKnown = leafClaim38(corev1.ClaimBound, "pvc-0d1c"), true, leafVolume(), true
	c.Pods = []inspect.PodFacts{{Pod: running.Pod, Leaf: leafPod38(), LeafKnown: true}}
	live.Members = read
	all["bound-live"] = live

	wiped := live
	wiped.Claims = []inspect.ClaimFacts{live.Claims[0]}
	wiped.Claims[0].Leaf, wiped.Claims[0].LeafVolume = nil, nil
	wiped.Claims[0].Pods = []inspect.PodFacts{{Pod: running.Pod, LeafKnown: true}}
	all["wiped-live"] = wiped

	taken := live
	taken.Claims = []inspect.ClaimFacts{live.Claims[0]}
	taken.Claims[0].Leaf, taken.Claims[0].LeafVolume, taken.Claims[0].Volume = foreignClaim(), nil, nil
	taken.Claims[0].Claim = withPlace(claim(corev1.ClaimPending, "", says(v1alpha1.ClaimPlaced, corev1.ConditionFalse, v1alpha1.ReasonNameTaken, `member "cluster38" has a claim "shop/data" that Xylem did not create`)))
	taken.Claims[0].Pods = nil
	all["taken-live"] = taken

	recovered := all["bound"]
	recovered.Claims = append([]inspect.ClaimFacts(nil), recovered.Claims...)
	r := &recovered.Claims[0]
	r.Volume = r.Volume.DeepCopy()
	r.Volume.Status.LastPhaseTransitionTime = ptr.To(ago(time.Minute))
	r.Events = append([]corev1.Event{
		event("Warning", "ProvisioningFailed", "past: the claim was bound later", "ebs.csi.aws.com", 90*time.Second, 4),
		event("Warning", "ProvisioningFailed", "past, in the same second", "ebs.csi.aws.com", time.Minute, 1),
		event("Warning", "VolumeResizeFailed", "current: the claim was already bound", "ebs.csi.aws.com", 10*time.Second, 2),
	}, r.Events...)
	web := running
	web.Pod = pod(corev1.PodRunning, node, isPushed(corev1.ConditionTrue, "Pushed", "leaf-pod-uid"),
		corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(30 * time.Second)})
	web.Events = []corev1.Event{event("Warning", "FailedMount", "past: the Pod became ready later", "kubelet", 40*time.Second, 1)}
	unready := inspect.PodFacts{Pod: pod(corev1.PodRunning, node, isPushed(corev1.ConditionTrue, "Pushed", "leaf-pod-uid"),
		corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: ago(30 * time.Second)})}
	unready.Events = []corev1.Event{event("Warning", "Unhealthy", "current: the Pod is not ready", "kubelet", 40*time.Second, 9)}
	r.Pods = []inspect.PodFacts{web, unready}
	all["recovered"] = recovered

	orphaned := connectedMember()
	orphaned[0].Status.Orphans = []v1alpha1.OrphanedVolume{{Volume: "pvc-77", Claim: "shop/data", Reason: "RootGone", Since: ago(2 * time.Hour)}, {Volume: "pvc-78", Claim: "shop/other", Reason: "RootGone"}}
	all["orphan"] = tree(orphaned, inspect.ClaimFacts{})

	all["pod"] = inspect.Facts{Registrations: connectedMember(), Pod: &running, Claims: []inspect.ClaimFacts{
		{Key: key, Claim: claim(corev1.ClaimBound, "pvc-0d1c"), Class: xylem, Volume: mirrored(corev1.VolumeBound)},
		{Key: types.NamespacedName{Namespace: "shop", Name: "cache"}}}}
	waiting := inspect.PodFacts{Pod: pod(corev1.PodPending, node)}
	all["pod-without-claims"] = inspect.Facts{Pod: &waiting, Registrations: []v1alpha1.ClusterRegistration{
		registration(metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "dial tcp 10.1.2.3:6443: i/o timeout")}}
	forbidden := tree(nil, inspect.ClaimFacts{Claim: claim(corev1.ClaimBound, "pvc-0d1c"), Pods: []inspect.PodFacts{running}})
	forbidden.Missing = []inspect.Missing{
		{What: "ClusterRegistrations", Why: `clusterregistrations.cluster.xylem.io is forbidden: User "ann" cannot list resource`},
		{What: "PersistentVolume pvc-0d1c", Why: `persistentvolumes "pvc-0d1c" is forbidden: User "ann" cannot get resource`},
	}
	all["no-rights"] = forbidden
	return all
}

func withoutPlace(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c.Annotations = nil
	return c
}

func withPlace(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: clusterID}
	return c
}

func with(pv *corev1.PersistentVolume, key, value string) *corev1.PersistentVolume {
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, key, value)
	return pv
}

func foreignClaim() *corev1.PersistentVolumeClaim {
	c := claim(corev1.ClaimBound, "pvc-theirs")
	c.Annotations = nil
	return c
}

func TestTrees(t *testing.T) {
	for name, f := range cases() {
		for suffix, width := range map[string]int{"": 0, "-100": 100, "-40": 40} {
			if suffix != "" && name != "pending-live" {
				continue
			}
			t.Run(name+suffix, func(t *testing.T) {
				var out bytes.Buffer
				page{inspect.Page{Out: &out, Width: width, Now: now}}.printTree(BuildTree(&f))
				if strings.Contains(out.String(), "\x1b") {
					t.Error("the output is colored, although colors are not enabled")
				}
				golden(t, name+suffix+".txt", out.String())
			})
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", file, diff)
	}
}

// TestPrintedAsJSON checks the JSON output, which is a contract.
func TestPrintedAsJSON(t *testing.T) {
	f := cases()["pending-live"]
	var out bytes.Buffer
	if err := (&command.Output{Format: "json"}).Print(&out, BuildTree(&f)); err != nil {
		t.Fatal(err)
	}
	golden(t, "pending-live.json", out.String())
}

// TestVolumeWithoutClaim checks that the tree of a volume that no claim is bound to begins with the volume.
func TestVolumeWithoutClaim(t *testing.T) {
	pv := mirrored(corev1.VolumeAvailable)
	root := BuildTree(&inspect.Facts{Now: now, Registrations: connectedMember(), Claims: []inspect.ClaimFacts{{Volume: pv}}}).Root
	if root.Kind != inspect.KindVolume || root.Name != pv.Name || len(root.Children) != 1 || root.Children[0].Kind != inspect.KindRegistration {
		t.Errorf("got %+v, want the volume, and below it its member", root)
	}
}
