package lifecycletest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// PodUID is the UID of RootPod.
const PodUID = types.UID("pod-uid")

// Copies determines the names of the copies of ConfigMaps and Secrets in the Pods' namespace.
var Copies = mirror.ConfigCopies{HostID: MemberHere.HostID, NamespaceUID: "shop-uid"}

// MemberHere and There are two members. Now is the current time.
var (
	MemberHere = mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"}
	There      = mirror.Member{Registration: "cluster39", ClusterID: "id39", NodeName: "kosmos-cluster39", HostID: "host-id"}

	Now = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
)

// ObservedPod returns an observation of a Pod with one claim. The scheduler has just chosen a node for
// both. The leaf claim exists and waits for its consumer.
func ObservedPod(change ...func(*lifecycle.Observed)) lifecycle.Observed {
	o := lifecycle.Observed{
		Member: MemberHere, SchedulerNominates: true,
		Root:            RootPod(),
		HostNamespace:   placement.Namespace{Name: "shop", Known: true},
		Node:            VirtualNode(),
		MemberNamespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelHost: MemberHere.HostID}}},
		Claims:          []lifecycle.Claim{RequestedClaim("data", MemberHere)},
		Copies:          Copies,
	}
	o.Root.Status.NominatedNodeName = MemberHere.NodeName
	for _, c := range change {
		c(&o)
	}
	return o
}

// RootPod returns a Pod with one claim.
func RootPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: PodUID},
		Spec: corev1.PodSpec{
			Containers:  []corev1.Container{{Name: "web", Image: "web:1"}},
			Tolerations: []corev1.Toleration{{Key: v1alpha1.DefaultTaintKey, Operator: corev1.TolerationOpExists}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// VirtualNode returns the virtual node of MemberHere.
func VirtualNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: MemberHere.NodeName, Labels: map[string]string{
			v1alpha1.LabelVirtualNode: "true", v1alpha1.LabelClusterID: MemberHere.ClusterID,
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: v1alpha1.DefaultTaintKey, Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
	}
}

// RequestedClaim returns an unbound claim whose volume was requested in the given member.
func RequestedClaim(name string, m mirror.Member) lifecycle.Claim {
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name + "-uid"),
		Annotations: map[string]string{
			route.AnnSelectedNode: m.NodeName, v1alpha1.AnnotationPlacedIn: m.ClusterID, volumehelpers.AnnStorageProvisioner: v1alpha1.ProvisionerName,
		}}}
	leaf := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "leaf-claim"}}
	mirror.OriginForRoot(m.HostID, root).StampLeaf(leaf)
	return lifecycle.Claim{Name: name, Root: root, ProvisionedByXylem: true, Leaf: leaf, LeafClassWaits: true}
}

// BoundClaim returns a bound claim whose volume is in the given member.
func BoundClaim(name string, m mirror.Member) lifecycle.Claim {
	c := RequestedClaim(name, m)
	c.Root.Spec.VolumeName = "pv-" + name
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name, UID: "leaf-pv"},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}}}}
	c.Volume = hostpv.TranslateVolume(leaf, c.Root, corev1.PersistentVolumeReclaimDelete, m)
	return c
}

// WithPushedCondition sets the root's Pushed condition, as the given member's controller does.
func WithPushedCondition(m mirror.Member, status corev1.ConditionStatus) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) {
		c := corev1.PodCondition{Type: v1alpha1.PodPushed, Status: status, Reason: v1alpha1.ReasonPushed, Message: "runs in member " + m.Registration}
		if status == corev1.ConditionTrue {
			metav1.SetMetaDataAnnotation(&o.Root.ObjectMeta, v1alpha1.AnnotationLeafUID, "leaf-uid")
		}
		if status == corev1.ConditionFalse {
			c.Reason, c.Message = v1alpha1.ReasonWithdrawn, "withdrawn"
		}
		o.Root.Status.Conditions = append(o.Root.Status.Conditions, c)
		metav1.SetMetaDataAnnotation(&o.Root.ObjectMeta, v1alpha1.AnnotationReportedBy, m.ClusterID)
	}
}

// LeafPodOf returns the root's leaf Pod in member MemberHere.
func LeafPodOf(root *corev1.Pod) *corev1.Pod {
	leaf, err := podspec.TranslatePod(root, MemberHere)
	if err != nil {
		panic(err)
	}
	leaf.UID = "leaf-uid"
	return leaf
}

// WithLeafPod adds the root's leaf Pod.
func WithLeafPod(o *lifecycle.Observed) {
	o.Leaf = LeafPodOf(o.Root)
	o.Origin = mirror.OriginForRoot(MemberHere.HostID, o.Root)
}

// BoundToNode binds the root to a node.
func BoundToNode(node string) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) { o.Root.Spec.NodeName = node }
}

// BoundToMember binds the Pod and its claim to this member.
func BoundToMember(o *lifecycle.Observed) {
	BoundToNode(MemberHere.NodeName)(o)
	o.Claims = []lifecycle.Claim{BoundClaim("data", MemberHere)}
}

// WithPhase sets the root's phase.
func WithPhase(p corev1.PodPhase) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) { o.Root.Status.Phase = p }
}

// ObservedPromisePod returns an observation of a Pod that is bound to this member. Its claim is bound to a
// promise, is placed in this member, and has a leaf claim that waits for its consumer.
func ObservedPromisePod(change ...func(*lifecycle.Observed)) lifecycle.Observed {
	return ObservedPod(append([]func(*lifecycle.Observed){func(o *lifecycle.Observed) {
		o.Root.Spec.NodeName, o.Root.Status.NominatedNodeName = MemberHere.NodeName, ""
		c := &o.Claims[0]
		c.Volume = hostpv.PromiseWithMember(hostpv.NewPromiseFor(c.Root, &storagev1.StorageClass{Parameters: map[string]string{}}), MemberHere, o.Root)
		c.Root.Spec.VolumeName = c.Volume.Name
	}}, change...)...)
}

// DiskProvisionedIn sets the member in which the promise's disk was provisioned.
func DiskProvisionedIn(m mirror.Member) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) {
		leaf := &corev1.PersistentVolume{}
		leaf.Name, leaf.UID = "pv-1", "leaf-pv-uid"
		o.Claims[0].Volume = hostpv.FulfillPromise(hostpv.PromiseWithMember(o.Claims[0].Volume, m, nil), leaf, corev1.PersistentVolumeReclaimDelete, m)
	}
}

// ReleasedWhenUnused makes the promise release its disk with the last Pod. Call it before DiskProvisionedIn.
func ReleasedWhenUnused(o *lifecycle.Observed) {
	class := hostpv.ClassOfPromise(o.Claims[0].Volume)
	class.Parameters[v1alpha1.ParameterRelease] = v1alpha1.ReleaseWhenUnused
	o.Claims[0].Volume = hostpv.NewPromiseFor(o.Claims[0].Root, class)
}
