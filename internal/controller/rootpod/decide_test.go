package rootpod

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/route"
)

const podUID = types.UID("pod-uid")

// copies of the namespace that Pods are in.
var copies = mirror.Copies{HostID: here.HostID, Namespace: "shop-uid"}

var (
	here  = mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"}
	there = mirror.Member{Registration: "cluster39", ClusterID: "id39", NodeName: "kosmos-cluster39", HostID: "host-id"}

	now = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
)

// seen is a Pod with one claim that the scheduler has just put on this member's
// node: the leaf claim is there and waits for its consumer.
func seen(change ...func(*observed)) observed {
	o := observed{
		member: here, nominated: true,
		root:      rootPod(),
		node:      virtualNode(),
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelHost: here.HostID}}},
		claims:    []claim{asked("data", here)},
		copies:    copies,
	}
	o.root.Status.NominatedNodeName = here.NodeName
	for _, c := range change {
		c(&o)
	}
	return o
}

func rootPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: podUID},
		Spec: corev1.PodSpec{
			Containers:  []corev1.Container{{Name: "web", Image: "web:1"}},
			Tolerations: []corev1.Toleration{{Key: v1alpha1.DefaultTaintKey, Operator: corev1.TolerationOpExists}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func virtualNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: here.NodeName, Labels: map[string]string{
			v1alpha1.LabelVirtualNode: "true", v1alpha1.LabelClusterID: here.ClusterID,
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: v1alpha1.DefaultTaintKey, Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
	}
}

// asked is an unbound claim whose volume was asked for in a member.
func asked(name string, m mirror.Member) claim {
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name + "-uid"),
		Annotations: map[string]string{route.AnnSelectedNode: m.NodeName, v1alpha1.AnnotationPlacedIn: m.ClusterID}}}
	leaf := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "leaf-claim"}}
	mirror.OriginFor(m.HostID, root).Stamp(leaf)
	return claim{name: name, root: root, leaf: leaf, leafWaits: true}
}

// bound is a claim whose volume is in a member.
func bound(name string, m mirror.Member) claim {
	c := asked(name, m)
	c.root.Spec.VolumeName = "pv-" + name
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name, UID: "leaf-pv"},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}}}}
	c.volume = hostpv.Mirror(leaf, c.root, corev1.PersistentVolumeReclaimDelete, m)
	return c
}

// leafBound is a claim whose leaf is bound in the member.
func leafBound(c claim) claim {
	c.leaf.Spec.VolumeName = "pv-" + c.name
	return c
}

// mirrored is a claim whose leaf claim is gone, and whose volume the host represents.
func mirrored(c claim) claim {
	c.leaf, c.mirrored = nil, true
	return c
}

func pushed(m mirror.Member, status corev1.ConditionStatus) func(*observed) {
	return func(o *observed) {
		c := corev1.PodCondition{Type: v1alpha1.PodPushed, Status: status, Reason: v1alpha1.ReasonPushed, Message: pushedMessage(leafOf(rootPod()), m)}
		if status == corev1.ConditionTrue {
			metav1.SetMetaDataAnnotation(&o.root.ObjectMeta, v1alpha1.AnnotationLeafUID, "leaf-uid")
		}
		if status == corev1.ConditionFalse {
			c.Reason, c.Message = v1alpha1.ReasonWithdrawn, "taken back"
		}
		o.root.Status.Conditions = append(o.root.Status.Conditions, c)
		metav1.SetMetaDataAnnotation(&o.root.ObjectMeta, v1alpha1.AnnotationReportedBy, m.ClusterID)
	}
}

// noUID: an earlier version recorded none.
func noUID(o *observed) { delete(o.root.Annotations, v1alpha1.AnnotationLeafUID) }

func leafOf(root *corev1.Pod) *corev1.Pod {
	leaf, err := podspec.Translate(root, here)
	if err != nil {
		panic(err)
	}
	leaf.UID = "leaf-uid"
	return leaf
}

// running: the leaf is there.
func running(o *observed) {
	o.leaf = leafOf(o.root)
	o.origin = mirror.OriginFor(here.HostID, o.root)
}

func on(node string) func(*observed) { return func(o *observed) { o.root.Spec.NodeName = node } }

// onNode: the host has bound the Pod here, and so its claim.
func onNode(o *observed) {
	on(here.NodeName)(o)
	o.claims = []claim{bound("data", here)}
}

func deleted(grace *int64) func(*observed) {
	return func(o *observed) { o.root.DeletionTimestamp, o.root.DeletionGracePeriodSeconds = &now, grace }
}

func leafDeleted(grace *int64) func(*observed) {
	return func(o *observed) { o.leaf.DeletionTimestamp, o.leaf.DeletionGracePeriodSeconds = &now, grace }
}

func phase(p corev1.PodPhase) func(*observed) { return func(o *observed) { o.root.Status.Phase = p } }

func claims(c ...claim) func(*observed) { return func(o *observed) { o.claims = c } }

func nominated(node string) func(*observed) {
	return func(o *observed) { o.root.Status.NominatedNodeName = node }
}

// fallback: the host's scheduler does not show which node it nominated.
func fallback(o *observed) { o.nominated, o.root.Status.NominatedNodeName = false, "" }

func daemonSet(o *observed) {
	o.root.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "ds", Controller: ptr.To(true)}}
}

func with(c claim, change func(*claim)) claim { change(&c); return c }

func says(reason string) decision { return nothing{&mirror.Refusal{Reason: reason}} }

// gaveUp: leaf_pod has failed the root, since the disk of a promise could not be made.
func gaveUp(o *observed) {
	o.root.Status.Phase, o.root.Status.Reason = corev1.PodFailed, v1alpha1.ReasonPlacementFailed
}

// lacks what it needs, in the host.
func lacks(o *observed) {
	o.lacking = &mirror.Refusal{Reason: v1alpha1.ReasonReferenceMissing, Message: "no"}
}

func leafEnded(o *observed) { o.leaf.Status.Phase = corev1.PodSucceeded }

// knows another node, of the cluster with this ID, or of none.
func knows(name, clusterID string) func(*observed) {
	return func(o *observed) {
		node := virtualNode()
		node.Name = name
		node.Labels[v1alpha1.LabelClusterID] = clusterID
		o.others = map[string]*corev1.Node{name: node}
	}
}

// askedOn is a claim whose volume was asked for on a node.
func askedOn(node string) claim {
	c := asked("data", here)
	c.root.Annotations[route.AnnSelectedNode] = node
	return c
}

func leafGoing(o *observed) { o.leaf.DeletionTimestamp = &metav1.Time{} }

func TestDecide(t *testing.T) {
	leaf := create{leaf: leafOf(rootPod())}
	for name, tc := range map[string]struct {
		observed observed
		want     decision
	}{
		// Before the host has bound the Pod.
		"the scheduler chose this node: the Pod goes early, as its claim's consumer": {seen(), leaf},
		"the claim is annotated with the node, but no scheduler nominated the Pod: a tenant can write that (I8)": {
			seen(nominated("")), nothing{}},
		"the scheduler nominated another node (I8)":                          {seen(nominated(there.NodeName)), nothing{}},
		"the claim's volume was asked for on another node":                   {seen(claims(asked("data", there))), nothing{}},
		"the claim is not placed yet":                                        {seen(claims(with(asked("data", here), func(c *claim) { delete(c.root.Annotations, v1alpha1.AnnotationPlacedIn) }))), nothing{}},
		"the claim is placed in another member (I3)":                         {seen(claims(with(asked("data", here), func(c *claim) { c.root.Annotations[v1alpha1.AnnotationPlacedIn] = there.ClusterID }))), nothing{}},
		"the leaf claim is not made yet":                                     {seen(claims(with(asked("data", here), func(c *claim) { c.leaf = nil }))), nothing{}},
		"the member's class binds at once: the Pod waits for the host":       {seen(claims(with(asked("data", here), func(c *claim) { c.leafWaits = false }))), nothing{}},
		"one claim waits, another binds at once: the Pod is the consumer":    {seen(claims(asked("data", here), with(asked("more", here), func(c *claim) { c.leafWaits = false }))), leaf},
		"the claim does not exist":                                           {seen(claims(claim{name: "data"})), nothing{}},
		"the claim is being deleted":                                         {seen(claims(with(asked("data", here), func(c *claim) { c.root.DeletionTimestamp = &now }))), nothing{}},
		"one claim is bound here, the other waits here":                      {seen(claims(bound("data", here), asked("more", here))), leaf},
		"one claim is bound here, and its leaf claim is not there":           {seen(claims(with(bound("data", here), func(c *claim) { c.leaf = nil }), asked("more", here))), nothing{}},
		"one claim is bound in another member (I3)":                          {seen(claims(bound("data", there), asked("more", here))), nothing{}},
		"one claim names a volume that is not bound to it":                   {seen(claims(with(bound("data", here), func(c *claim) { c.volume = nil }), asked("more", here))), nothing{}},
		"all claims are bound here and the node is not written yet: no push": {seen(claims(bound("data", here))), nothing{}},
		"a scheduling gate holds the Pod":                                    {seen(func(o *observed) { o.root.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }), nothing{}},
		"the Pod has ended":                                                  {seen(phase(corev1.PodFailed)), nothing{}},
		"there is no virtual node":                                           {seen(func(o *observed) { o.node = nil }), nothing{}},
		"the Pod has no claims: the host binds it first":                     {seen(func(o *observed) { o.root.Spec.Volumes, o.claims = nil, nil }), nothing{}},
		"a DaemonSet's Pod with an ephemeral claim is not pushed early":      {seen(daemonSet), says(v1alpha1.ReasonDaemonSet)},

		"no nomination to go by: a Pod that fits goes early":                    {seen(fallback), leaf},
		"no nomination, and a taint that the Pod does not tolerate (I8)":        {seen(fallback, func(o *observed) { o.root.Spec.Tolerations = nil }), nothing{}},
		"no nomination, and a selector that the node does not match (I8)":       {seen(fallback, func(o *observed) { o.root.Spec.NodeSelector = map[string]string{"disk": "fast"} }), nothing{}},
		"no nomination, and the node is cordoned (I8)":                          {seen(fallback, func(o *observed) { o.node.Spec.Unschedulable = true }), nothing{}},
		"no nomination, and a scheduling gate (I8)":                             {seen(fallback, func(o *observed) { o.root.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }), nothing{}},
		"no nomination, and another Pod uses the claim: which one is not known": {seen(fallback, claims(with(asked("data", here), func(c *claim) { c.shared = true }))), nothing{}},

		"the Pod cannot be translated: the user is told": {seen(func(o *observed) {
			o.root.Spec.HostNetwork = true
			o.root.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		}),
			says(v1alpha1.ReasonPodUnsupported)},
		"the member's namespace is somebody else's (I4)": {seen(func(o *observed) { o.namespace.Labels = nil }), says(v1alpha1.ReasonNamespaceConflict)},
		"the member's namespace is not made yet":         {seen(func(o *observed) { o.namespace = nil }), nothing{}},
		"a ConfigMap is not brought yet":                 {seen(func(o *observed) { o.missing = []string{"ConfigMap settings"} }), awaitReferences{}},
		"the host lacks a Secret that the Pod needs":     {seen(lacks), awaitReferences{&mirror.Refusal{Reason: v1alpha1.ReasonReferenceMissing}}},
		"the same, and the host has bound the Pod":       {seen(onNode, lacks), awaitReferences{&mirror.Refusal{Reason: v1alpha1.ReasonReferenceMissing}}},
		"the host's namespace is not seen yet":           {seen(func(o *observed) { o.copies.Namespace = "" }), nothing{}},

		// Early leaves.
		"the early leaf is noted on the root (I6)":             {seen(running), markPushed{}},
		"the early leaf runs and is noted: at rest (I5)":       {seen(running, pushed(here, corev1.ConditionTrue)), nothing{}},
		"all claims bound and no node yet is no withdrawal":    {seen(running, pushed(here, corev1.ConditionTrue), claims(bound("data", here))), nothing{}},
		"the claim names its volume, the PV is not seen yet":   {seen(running, pushed(here, corev1.ConditionTrue), claims(with(bound("data", here), func(c *claim) { c.volume = nil }))), nothing{}},
		"the scheduler took its choice back":                   {seen(running, claims(with(asked("data", here), func(c *claim) { delete(c.root.Annotations, route.AnnSelectedNode) }))), remove{why: "the scheduler has changed its mind"}},
		"the scheduler chose another node":                     {seen(running, claims(asked("data", there))), remove{why: "the scheduler has changed its mind"}},
		"the claim was bound in another member (I3)":           {seen(running, claims(bound("data", there), asked("more", here))), remove{why: "claim data is bound to volume pv-data, which is not in member cluster38"}},
		"the claim was deleted":                                {seen(running, claims(claim{name: "data"})), remove{why: "claim data is gone"}},
		"the Pod was bound to another node":                    {seen(running, on("worker-1"), knows("worker-1", "")), remove{why: "its root was bound to node worker-1"}},
		"the Pod was bound to another member's node":           {seen(running, on(there.NodeName), knows(there.NodeName, there.ClusterID)), remove{why: "its root was bound to node kosmos-cluster39"}},
		"the Pod was bound to a node that is not known":        {seen(running, on("worker-1")), nothing{}},
		"another registration of this cluster runs it (I4)":    {seen(running, on("kosmos-renamed"), knows("kosmos-renamed", here.ClusterID)), nothing{}},
		"the scheduler chose the cluster's other registration": {seen(running, pushed(here, corev1.ConditionTrue), claims(askedOn("kosmos-renamed")), knows("kosmos-renamed", here.ClusterID)), nothing{}},
		"the root ended before it was bound, its leaf does not run on": {
			seen(running, pushed(here, corev1.ConditionTrue), phase(corev1.PodFailed)), remove{why: "the Pod has ended as Failed"}},
		"the early leaf ends already":                              {seen(running, leafDeleted(nil), claims(asked("data", there))), nothing{}},
		"the leaf was withdrawn: the next one may go (I6)":         {seen(pushed(here, corev1.ConditionTrue)), markWithdrawn{}},
		"withdrawn, and asked for again: one may go again":         {seen(pushed(here, corev1.ConditionFalse)), leaf},
		"it runs early in another member: not ours to deny":        {seen(pushed(there, corev1.ConditionTrue), nominated(there.NodeName), claims(asked("data", there))), nothing{}},
		"the leaf is gone, and may have run: its volume was bound": {seen(pushed(here, corev1.ConditionTrue), claims(leafBound(asked("data", here)))), nothing{}},
		"the same, and the host has bound the claim":               {seen(pushed(here, corev1.ConditionTrue), claims(leafBound(bound("data", here)))), nothing{}},
		"it cannot have run: one volume was never bound":           {seen(pushed(here, corev1.ConditionTrue), claims(leafBound(asked("data", here)), asked("more", here))), markWithdrawn{}},
		"the leaf claim is gone as well, its volume was mirrored":  {seen(pushed(here, corev1.ConditionTrue), claims(mirrored(asked("data", here)))), nothing{}},
		"the same, and the host has bound the claim to it":         {seen(pushed(here, corev1.ConditionTrue), claims(mirrored(bound("data", here)))), nothing{}},
		"the leaf claim is gone as well, another was never bound":  {seen(pushed(here, corev1.ConditionTrue), claims(mirrored(asked("data", here)), asked("more", here))), markWithdrawn{}},
		"the other member was abandoned, the claim is ours":        {seen(pushed(there, corev1.ConditionTrue)), markWithdrawn{}},
		"a Pod without claims and node is nobody's":                {observed{member: here, root: &corev1.Pod{}}, nothing{}},
		"a Pod on another node is not looked at":                   {seen(on("worker-1")), nothing{}},
		"the leaf's root is gone: removed once that is proven":     {seen(running, func(o *observed) { o.root = nil }), remove{rootGone: true, why: "its root is gone"}},
		"the leaf is of an earlier Pod of that name (I4)":          {seen(running, func(o *observed) { o.root.UID = "newer" }), remove{rootGone: true, why: "its root is gone"}},
		"the leaf of an earlier Pod ends already":                  {seen(running, leafDeleted(nil), func(o *observed) { o.root.UID = "newer" }), nothing{}},
		"neither root nor leaf":                                    {observed{member: here}, nothing{}},

		// Bound Pods.
		"the host bound the Pod here: its leaf is made":                  {seen(onNode), leaf},
		"an earlier version noted it without its UID":                    {seen(onNode, running, pushed(here, corev1.ConditionTrue), noUID), markPushed{}},
		"the leaf of a bound Pod is noted on the root (I6)":              {seen(onNode, running), markPushed{}},
		"its disk cannot be made here, and it was failed: its leaf goes": {seen(onNode, running, pushed(here, corev1.ConditionTrue), gaveUp), remove{why: "its disk could not be made there"}},
		"the same, its leaf goes already":                                {seen(onNode, running, pushed(here, corev1.ConditionTrue), gaveUp, leafGoing), nothing{}},
		"a bound Pod runs: at rest (I5)":                                 {seen(onNode, running, pushed(here, corev1.ConditionTrue)), nothing{}},
		"the leaf vanished: it is never run twice":                       {seen(onNode, pushed(here, corev1.ConditionTrue)), nothing{}},
		"the Pod has ended and its leaf is gone: not run again":          {seen(onNode, phase(corev1.PodSucceeded)), nothing{}},
		"the user is told that DaemonSets stay out":                      {seen(onNode, daemonSet), says(v1alpha1.ReasonDaemonSet)},
		"a Pod put here by hand does not fit: leaf_pod fails it":         {seen(onNode, func(o *observed) { o.root.Spec.NodeSelector = map[string]string{"disk": "fast"} }), nothing{}},
		"a Pod put here by hand has a claim that nobody will bind":       {seen(on(here.NodeName)), says(v1alpha1.ReasonClaimNotBound)},
		"a Pod put here by hand has no claim":                            {seen(on(here.NodeName), claims(claim{name: "data"})), says(v1alpha1.ReasonClaimNotBound)},
		"the claim names a volume that is not bound to it":               {seen(onNode, claims(with(bound("data", here), func(c *claim) { c.volume = nil }))), says(v1alpha1.ReasonClaimNotBound)},
		"the claim of its ephemeral volume is not its own":               {seen(onNode, claims(with(bound("data", here), func(c *claim) { c.foreign = true }))), says(v1alpha1.ReasonClaimForeign)},
		"it would go early with an ephemeral claim not its own":          {seen(claims(with(asked("data", here), func(c *claim) { c.foreign = true }))), nothing{}},
		"the claim's volume is in another member":                        {seen(onNode, claims(bound("data", there))), says(v1alpha1.ReasonVolumeUnreachable)},
		"the claim's volume is the host's own":                           {seen(onNode, claims(with(bound("data", here), func(c *claim) { c.volume.Spec.CSI.Driver = "disk.example.com" }))), says(v1alpha1.ReasonVolumeUnreachable)},
		"the leaf claim has to be made first":                            {seen(onNode, claims(with(bound("data", here), func(c *claim) { c.leaf = nil }))), nothing{}},
		"an image was changed":                                           {seen(onNode, running, pushed(here, corev1.ConditionTrue), func(o *observed) { o.root.Spec.Containers[0].Image = "web:2" }), update{}},
		"an image was changed, and the leaf is being deleted":            {seen(onNode, running, leafDeleted(nil), pushed(here, corev1.ConditionTrue), func(o *observed) { o.root.Spec.Containers[0].Image = "web:2" }), nothing{}},
		"an image was changed, and the leaf has ended":                   {seen(onNode, running, pushed(here, corev1.ConditionTrue), func(o *observed) { o.root.Spec.Containers[0].Image = "web:2"; o.leaf.Status.Phase = corev1.PodFailed }), nothing{}},
		"an image was changed, and the root has ended":                   {seen(onNode, running, pushed(here, corev1.ConditionTrue), phase(corev1.PodFailed), leafEnded, func(o *observed) { o.root.Spec.Containers[0].Image = "web:2" }), nothing{}},
		"a restored member runs the leaf of a Pod that has failed":       {seen(onNode, running, pushed(here, corev1.ConditionTrue), phase(corev1.PodFailed)), remove{why: "the Pod has ended as Failed"}},
		"a restored member runs the leaf of a Pod that has succeeded":    {seen(onNode, running, pushed(here, corev1.ConditionTrue), phase(corev1.PodSucceeded)), remove{why: "the Pod has ended as Succeeded"}},
		"the same, its leaf goes already: at rest (I5)":                  {seen(onNode, running, pushed(here, corev1.ConditionTrue), phase(corev1.PodSucceeded), leafGoing), nothing{}},
		"both have ended: at rest (I5)":                                  {seen(onNode, running, pushed(here, corev1.ConditionTrue), phase(corev1.PodSucceeded), leafEnded), nothing{}},

		// Deletion.
		"the user deletes the Pod: its leaf is given the same grace": {seen(onNode, running, deleted(ptr.To[int64](7))), remove{grace: ptr.To[int64](7), why: "its root is deleted"}},
		"the leaf is ending":                                             {seen(onNode, running, deleted(ptr.To[int64](7)), leafDeleted(ptr.To[int64](7))), nothing{}},
		"the user shortens the grace":                                    {seen(onNode, running, deleted(ptr.To[int64](1)), leafDeleted(ptr.To[int64](7))), remove{grace: ptr.To[int64](1), why: "its root is deleted"}},
		"the leaf is gone, its end not shown yet: Jobs count it":         {seen(onNode, pushed(here, corev1.ConditionTrue), deleted(nil), phase(corev1.PodRunning)), nothing{}},
		"the leaf is gone and its end is shown: the Pod is finished":     {seen(onNode, pushed(here, corev1.ConditionTrue), deleted(nil), phase(corev1.PodSucceeded)), finish{}},
		"a Pod that was never pushed is deleted: its end is shown first": {seen(onNode, deleted(nil)), nothing{}},
		"a Pod that was never pushed is finished after its end":          {seen(onNode, deleted(nil), phase(corev1.PodFailed)), finish{}},
		"a DaemonSet's Pod is deleted: its end is shown first":           {seen(onNode, daemonSet, deleted(nil)), nothing{}},
		"a deleted Pod on another node is that kubelet's":                {seen(on("worker-1"), deleted(nil), phase(corev1.PodFailed)), nothing{}},
		"a deleted Pod without a node is nobody's to finish":             {seen(deleted(nil), phase(corev1.PodFailed)), nothing{}},
		"an early leaf whose root is deleted":                            {seen(running, deleted(ptr.To[int64](0))), remove{grace: ptr.To[int64](0), why: "its root is deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.observed), decisions); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// decisions are compared by type, by what they say to the user by its reason,
// by the identity of objects, and drifts not at all: mirror tests those.
var decisions = cmp.Options{
	cmp.AllowUnexported(awaitReferences{}, nothing{}, create{}, remove{}),
	cmp.Comparer(func(a, b *mirror.Refusal) bool {
		return (a == nil) == (b == nil) && (a == nil || a.Reason == b.Reason && (a.Message == "") != (b.Message == ""))
	}),
	cmp.Comparer(func(a, b *corev1.Pod) bool { return a.Namespace == b.Namespace && a.Name == b.Name }),
	cmp.Comparer(func(a, b update) bool { return !a.drift.Empty() || !b.drift.Empty() }),
}

func TestLeafCarriesTheOriginOfItsRoot(t *testing.T) {
	made, ok := decide(seen()).(create)
	if !ok {
		t.Fatalf("decision is %T, want create", decide(seen()))
	}
	if origin, ours := mirror.OriginIn(here.HostID, made.leaf); !ours || origin != mirror.OriginFor(here.HostID, rootPod()) {
		t.Errorf("the leaf's origin is %v, ours: %v", origin, ours)
	}
}

// What the user is told names the thing to change.
func TestMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		want     []string
	}{
		"nobody will bind the claim": {seen(on(here.NodeName)), []string{`claim "data"`, here.NodeName, "Leave spec.nodeName to the scheduler"}},
		"unreachable volume":         {seen(onNode, claims(bound("data", there))), []string{"pv-data", `member "cluster38"`}},
		"DaemonSet":                  {seen(onNode, daemonSet), []string{v1alpha1.LabelVirtualNode + "=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, ok := decide(tc.observed).(nothing)
			if !ok || d.problem == nil {
				t.Fatalf("decision is %#v, want a problem", decide(tc.observed))
			}
			for _, want := range tc.want {
				if !strings.Contains(d.problem.Message, want) {
					t.Errorf("message %q does not say %q", d.problem.Message, want)
				}
			}
		})
	}
}
