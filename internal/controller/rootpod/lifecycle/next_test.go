package lifecycle_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// leafBound returns a claim whose leaf claim is bound.
func leafBound(c lifecycle.Claim) lifecycle.Claim {
	c.Leaf.Spec.VolumeName = "pv-" + c.Name
	return c
}

// mirrored returns a claim whose leaf claim is gone, but which live reads show as bound in this member.
func mirrored(c lifecycle.Claim) lifecycle.Claim {
	c.Leaf, c.BoundHere = nil, true
	return c
}

// debugged adds an ephemeral container, as kubectl debug does.
func debugged(o *lifecycle.Observed) {
	c := corev1.EphemeralContainer{TargetContainerName: "web"}
	c.Name, c.Image = "debugger", "busybox:1"
	o.Root.Spec.EphemeralContainers = append(o.Root.Spec.EphemeralContainers, c)
}

// resized changes the resources of the root, as kubectl patch --subresource resize does.
func resized(o *lifecycle.Observed) {
	o.Root.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
}

// resizeRejected means that the member has just rejected the resize.
func resizeRejected(o *lifecycle.Observed) { o.ResizeRejected = true }

// noUID removes the leaf's UID from the root, as if an earlier version had pushed the Pod.
func noUID(o *lifecycle.Observed) { delete(o.Root.Annotations, v1alpha1.AnnotationLeafUID) }

// reported sets the condition to False, although a leaf ran for the root.
func reported(o *lifecycle.Observed) {
	o.Root.Status.Conditions[0].Status = corev1.ConditionFalse
}

// copiedUID sets the leaf's UID without the condition.
func copiedUID(o *lifecycle.Observed) {
	metav1.SetMetaDataAnnotation(&o.Root.ObjectMeta, v1alpha1.AnnotationLeafUID, "leaf-uid")
}

func deleted(grace *int64) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) { o.Root.DeletionTimestamp, o.Root.DeletionGracePeriodSeconds = &now, grace }
}

func leafDeleted(grace *int64) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) { o.Leaf.DeletionTimestamp, o.Leaf.DeletionGracePeriodSeconds = &now, grace }
}

func claims(c ...lifecycle.Claim) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) { o.Claims = c }
}

func nominated(node string) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) { o.Root.Status.NominatedNodeName = node }
}

// lost represents a scheduler that lost its nomination after a failed attempt.
func lost(o *lifecycle.Observed) {
	o.Root.Status.NominatedNodeName = ""
	o.Root.Status.Conditions = append(o.Root.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError})
}

// fallback represents a scheduler that does not set the nominated node.
func fallback(o *lifecycle.Observed) {
	o.SchedulerNominates, o.Root.Status.NominatedNodeName = false, ""
}

func daemonSet(o *lifecycle.Observed) {
	o.Root.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "ds", Controller: ptr.To(true)}}
}

func with(c lifecycle.Claim, change func(*lifecycle.Claim)) lifecycle.Claim { change(&c); return c }

func says(reason string) lifecycle.Decision {
	return lifecycle.Nothing{&mirror.Refusal{Reason: reason}}
}

// gaveUp marks the root as failed by leaf_pod because a promise's disk could not be provisioned.
func gaveUp(o *lifecycle.Observed) {
	o.Root.Status.Phase, o.Root.Status.Reason = corev1.PodFailed, v1alpha1.ReasonPlacementFailed
}

// lacks reports an object that the Pod needs but the host lacks.
func lacks(o *lifecycle.Observed) {
	o.ReferenceProblem = &mirror.Refusal{Reason: v1alpha1.ReasonReferenceMissing, Message: "no"}
}

// missing is a Secret that the host has and root_config has not copied yet.
func missing(o *lifecycle.Observed) { o.MissingCopies = []string{`Secret "password"`} }

// copying is the decision to report that the Pod waits for the copy of missing.
var copying = lifecycle.MarkCopying{Objects: []string{`Secret "password"`}}

func leafEnded(o *lifecycle.Observed) { o.Leaf.Status.Phase = corev1.PodSucceeded }

// knows adds another node to the cache. clusterID is empty for a plain host node.
func knows(name, clusterID string) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) {
		node := virtualNode()
		node.Name = name
		node.Labels[v1alpha1.LabelClusterID] = clusterID
		o.OtherNodes = map[string]*corev1.Node{name: node}
	}
}

// askedOn returns a claim whose volume was requested on the given node.
func askedOn(node string) lifecycle.Claim {
	c := asked("data", here)
	c.Root.Annotations[route.AnnSelectedNode] = node
	return c
}

// wantsTeam makes the registration admit only namespaces with label team=a.
func wantsTeam(o *lifecycle.Observed) {
	o.Rules = placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{
		Namespaces: v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"team": "a"}}}})
}

func ofTeam(o *lifecycle.Observed) { o.HostNamespace.Labels = map[string]string{"team": "a"} }

func unselected(c *lifecycle.Claim) { delete(c.Root.Annotations, route.AnnSelectedNode) }

// notPlaced makes a claim show that no node in the member suits its volume.
func notPlaced(c *lifecycle.Claim) {
	c.Root.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNotScheduled, Message: "no node"}}
}

func ending(c *lifecycle.Claim) { c.Root.DeletionTimestamp = &now }

// copied returns a claim whose volume another member has and shares. This member has no copy yet.
func copied() lifecycle.Claim {
	return with(bound("data", there), func(c *lifecycle.Claim) { c.NeedsVolumeCopy, c.Leaf, c.LeafClassWaits = true, nil, false })
}

// copyBound returns a claim whose copy in this member is bound.
func copyBound() lifecycle.Claim {
	return with(bound("data", there), func(c *lifecycle.Claim) { c.NeedsVolumeCopy, c.LeafClassWaits = true, false })
}

func leafOnNode(o *lifecycle.Observed) { o.Leaf.Spec.NodeName = "worker-1" }

func cordoned(o *lifecycle.Observed) { o.Node.Spec.Unschedulable = true }

// unschedulable is the host scheduler's report that the Pod fits no node.
func unschedulable(o *lifecycle.Observed) {
	o.Root.Status.Conditions = append(o.Root.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable})
}

// conditionShowsUnbindable is the report that the scheduler cannot bind the root of a leaf.
func shownUnbindable(o *lifecycle.Observed) {
	for i := range o.Root.Status.Conditions {
		if o.Root.Status.Conditions[i].Type == v1alpha1.PodPushed {
			o.Root.Status.Conditions[i].Reason = corev1.PodReasonUnschedulable
		}
	}
}

func leaving(o *lifecycle.Observed) { o.Member.Leaving = true }

func leafGoing(o *lifecycle.Observed) { o.Leaf.DeletionTimestamp = &metav1.Time{} }

func TestDecide(t *testing.T) {
	unplaced := with(asked("data", here), func(c *lifecycle.Claim) { c.Leaf = nil; delete(c.Root.Annotations, v1alpha1.AnnotationPlacedIn) })
	leaf, toCopy := lifecycle.CreateLeaf{Leaf: leafOf(rootPod())}, lifecycle.CopyVolume{Claim: "data", Volume: "pv-data"}
	for name, tc := range map[string]struct {
		observed lifecycle.Observed
		want     lifecycle.Decision
	}{
		// Before the host has bound the Pod.
		"the scheduler chose this node: the Pod is pushed early as its claim's consumer": {seen(), leaf},
		"the claim has the selected-node annotation, which a tenant can write, but the Pod is not nominated (I8)": {
			seen(nominated("")), lifecycle.Nothing{}},
		"the scheduler lost its nomination: it must choose again": {seen(lost), lifecycle.ChooseAgain{Claim: asked("data", here).Root}},
		"the scheduler lost its nomination, and root_pvc waits for it to place the claim": {
			seen(lost, claims(bound("more", here), unplaced)), lifecycle.ChooseAgain{Claim: unplaced.Root}},
		"the scheduler lost its nomination, and the claim is being provisioned":         {seen(lost, claims(with(asked("data", here), func(c *lifecycle.Claim) { c.LeafClassWaits = false }))), lifecycle.Nothing{}},
		"the scheduler lost its nomination, and the leaf claim is bound":                {seen(lost, claims(leafBound(asked("data", here)))), lifecycle.Nothing{}},
		"the scheduler lost its nomination, and another Pod's leaf waits for the claim": {seen(lost, claims(with(asked("data", here), func(c *lifecycle.Claim) { c.WantedByOtherPod = true }))), lifecycle.Nothing{}},
		"the scheduler lost its nomination, and the claim belongs to another Pod":       {seen(lost, claims(with(asked("data", here), func(c *lifecycle.Claim) { c.NotOwnedByPod = true }))), lifecycle.Nothing{}},
		"the scheduler lost its nomination, and the claim is of another provisioner": {
			seen(lost, claims(with(asked("data", here), func(c *lifecycle.Claim) {
				c.Leaf = nil
				delete(c.Root.Annotations, volumehelpers.AnnStorageProvisioner)
			}))), lifecycle.Nothing{}},
		"the scheduler lost its nomination, and the member is leaving":                   {seen(lost, func(o *lifecycle.Observed) { o.Member.Leaving = true }), lifecycle.Nothing{}},
		"the scheduler lost its nomination, and the Pod has finished":                    {seen(lost, phase(corev1.PodFailed)), lifecycle.Nothing{}},
		"the scheduler lost its nomination of another node":                              {seen(lost, claims(asked("data", there))), lifecycle.Nothing{}},
		"the scheduler lost its nomination, and its Pod's claim is bound":                {seen(lost, claims(bound("data", here))), lifecycle.Nothing{}},
		"a scheduler that does not nominate nodes retries: the Pod is pushed if it fits": {seen(lost, fallback), leaf},
		"the scheduler nominated another node (I8)":                                      {seen(nominated(there.NodeName)), lifecycle.Nothing{}},
		"the claim's volume was requested on another node":                               {seen(claims(asked("data", there))), lifecycle.Nothing{}},
		"the claim is not placed yet":                                                    {seen(claims(unplaced)), lifecycle.Nothing{}},
		"the claim is placed in another member (I3)":                                     {seen(claims(with(asked("data", here), func(c *lifecycle.Claim) { c.Root.Annotations[v1alpha1.AnnotationPlacedIn] = there.ClusterID }))), lifecycle.Nothing{}},
		"the leaf claim does not exist yet":                                              {seen(claims(with(asked("data", here), func(c *lifecycle.Claim) { c.Leaf = nil }))), lifecycle.Nothing{}},
		"the member's class binds immediately: the Pod waits for the host":               {seen(claims(with(asked("data", here), func(c *lifecycle.Claim) { c.LeafClassWaits = false }))), lifecycle.Nothing{}},
		"the leaf claim does not exist yet, and the Pod reports a problem in the member where the claim was before": {
			seen(pushed(there, corev1.ConditionFalse), claims(with(asked("data", here), func(c *lifecycle.Claim) { c.Leaf = nil }))), lifecycle.MarkAwaiting{Claim: "data"}},
		"the claim is being provisioned, and the Pod reports a problem in the member where the claim was before": {
			seen(pushed(there, corev1.ConditionFalse), claims(with(asked("data", here), func(c *lifecycle.Claim) { c.LeafClassWaits = false }))), lifecycle.MarkAwaiting{Claim: "data"}},
		"the claim is being provisioned, and the Pod reports a problem in this member": {
			seen(pushed(here, corev1.ConditionFalse), claims(with(asked("data", here), func(c *lifecycle.Claim) { c.LeafClassWaits = false }))), lifecycle.Nothing{}},
		"one claim waits, and another binds immediately: the Pod is the consumer": {seen(claims(asked("data", here), with(asked("more", here), func(c *lifecycle.Claim) { c.LeafClassWaits = false }))), leaf},
		"the claim does not exist":                                                  {seen(claims(lifecycle.Claim{Name: "data"})), lifecycle.Nothing{}},
		"the claim is being deleted":                                                {seen(claims(with(asked("data", here), func(c *lifecycle.Claim) { c.Root.DeletionTimestamp = &now }))), lifecycle.Nothing{}},
		"one claim is bound here, and the other waits here":                         {seen(claims(bound("data", here), asked("more", here))), leaf},
		"one claim is bound here, and its leaf claim is gone":                       {seen(claims(with(bound("data", here), func(c *lifecycle.Claim) { c.Leaf = nil }), asked("more", here))), lifecycle.Nothing{}},
		"one claim is bound in another member (I3)":                                 {seen(claims(bound("data", there), asked("more", here))), lifecycle.Nothing{}},
		"one claim is bound to a volume of the host, which the member cannot mount": {seen(claims(ofHost("data"), asked("more", here))), says(v1alpha1.ReasonVolumeUnreachable)},
		"one claim is bound to a volume of the host, and the scheduler has not chosen this node (I8)": {
			seen(claims(ofHost("data"), asked("more", here)), nominated(there.NodeName)), lifecycle.Nothing{}},
		"one claim names a volume that is not bound to it, and the other waits": {seen(claims(with(bound("data", here), func(c *lifecycle.Claim) { c.Volume = nil }), asked("more", here))), lifecycle.Nothing{}},
		"all claims are bound here, but the Pod is not: no early push":          {seen(claims(bound("data", here))), lifecycle.Nothing{}},
		"the Pod has a scheduling gate":                                         {seen(func(o *lifecycle.Observed) { o.Root.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }), lifecycle.Nothing{}},
		"the Pod has finished":                                                  {seen(phase(corev1.PodFailed)), lifecycle.Nothing{}},
		"the member has no virtual node":                                        {seen(func(o *lifecycle.Observed) { o.Node = nil }), lifecycle.Nothing{}},
		"a Pod without claims is pushed only after the host has bound it":       {seen(func(o *lifecycle.Observed) { o.Root.Spec.Volumes, o.Claims = nil, nil }), lifecycle.Nothing{}},
		"a DaemonSet's Pod with an ephemeral claim is not pushed early":         {seen(daemonSet), says(v1alpha1.ReasonDaemonSet)},

		"the scheduler does not nominate nodes: a Pod that fits is pushed early":                           {seen(fallback), leaf},
		"the scheduler does not nominate nodes, and the Pod does not tolerate a taint (I8)":                {seen(fallback, func(o *lifecycle.Observed) { o.Root.Spec.Tolerations = nil }), lifecycle.Nothing{}},
		"the scheduler does not nominate nodes, and the node does not match the Pod's selector (I8)":       {seen(fallback, func(o *lifecycle.Observed) { o.Root.Spec.NodeSelector = map[string]string{"disk": "fast"} }), lifecycle.Nothing{}},
		"the scheduler does not nominate nodes, and the node is cordoned (I8)":                             {seen(fallback, func(o *lifecycle.Observed) { o.Node.Spec.Unschedulable = true }), lifecycle.Nothing{}},
		"the scheduler does not nominate nodes, and the Pod has a scheduling gate (I8)":                    {seen(fallback, func(o *lifecycle.Observed) { o.Root.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }), lifecycle.Nothing{}},
		"the scheduler does not nominate nodes, and an older Pod uses the claim: that Pod is the consumer": {seen(fallback, claims(with(asked("data", here), func(c *lifecycle.Claim) { c.UsedByOlderPod = true }))), lifecycle.Nothing{}},

		"the Pod cannot be translated: the problem is reported": {seen(func(o *lifecycle.Observed) {
			o.Root.Spec.HostNetwork = true
			o.Root.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		}),
			says(v1alpha1.ReasonPodUnsupported)},
		"the Pod has too many references": {seen(func(o *lifecycle.Observed) {
			for i := range refs.ReferenceLimit + 1 {
				o.Root.Spec.ImagePullSecrets = append(o.Root.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: strconv.Itoa(i)})
			}
		}), says(v1alpha1.ReasonPodUnsupported)},
		"the member rejects the namespace": {seen(func(o *lifecycle.Observed) {
			o.MemberNamespace, o.Rejection = nil, mirror.NewRefusal(v1alpha1.ReasonNamespaceRefused, "no")
		}), says(v1alpha1.ReasonNamespaceRefused)},
		"the member's namespace is foreign (I4)":                           {seen(func(o *lifecycle.Observed) { o.MemberNamespace.Labels = nil }), says(v1alpha1.ReasonNamespaceConflict)},
		"the Pod's namespace lacks a label that the registration requires": {seen(wantsTeam), says(v1alpha1.ReasonNamespaceNotAdmitted)},
		"the Pod's namespace has the label that the registration requires": {seen(wantsTeam, ofTeam), leaf},
		"the Pod's namespace lost the required label after the push":       {seen(running, pushed(here, corev1.ConditionTrue), wantsTeam), lifecycle.Nothing{}},
		"the labels of the Pod's namespace are not known yet":              {seen(wantsTeam, func(o *lifecycle.Observed) { o.HostNamespace.Known = false }), lifecycle.Nothing{}},
		"the member's namespace does not exist yet":                        {seen(func(o *lifecycle.Observed) { o.MemberNamespace = nil }), lifecycle.Nothing{}},
		"a ConfigMap is not copied yet":                                    {seen(func(o *lifecycle.Observed) { o.MissingCopies = []string{"ConfigMap settings"} }), lifecycle.AwaitReferences{}},
		"a Secret is not copied yet, which the host lacked before":         {seen(missing, podSays(v1alpha1.ReasonReferenceMissing)), copying},
		"a Secret is not copied yet, which Xylem could not read before":    {seen(missing, podSays(v1alpha1.ReasonReferenceForbidden)), copying},
		"a Secret is not copied yet, which had another type before":        {seen(missing, podSays(v1alpha1.ReasonSecretUnsupported)), copying},
		"a Secret is not copied yet, which was too large before":           {seen(missing, podSays(v1alpha1.ReasonReferenceTooLarge)), copying},
		"the Pod already reports that it waits for the copy (I5)":          {seen(missing, podSays(v1alpha1.ReasonReferenceAwaited)), lifecycle.AwaitReferences{}},
		"a Secret is not copied yet, and the Pod reports another problem":  {seen(missing, podSays(v1alpha1.ReasonRefusedByMember)), lifecycle.AwaitReferences{}},
		"the host lacks the Secret again":                                  {seen(missing, lacks, podSays(v1alpha1.ReasonReferenceAwaited)), lifecycle.AwaitReferences{&mirror.Refusal{Reason: v1alpha1.ReasonReferenceMissing}}},
		"the Secret is copied":                                             {seen(podSays(v1alpha1.ReasonReferenceAwaited)), leaf},
		"the host lacks a Secret that the Pod needs":                       {seen(lacks), lifecycle.AwaitReferences{&mirror.Refusal{Reason: v1alpha1.ReasonReferenceMissing}}},
		"the host lacks a Secret that a bound Pod needs":                   {seen(onNode, lacks), lifecycle.AwaitReferences{&mirror.Refusal{Reason: v1alpha1.ReasonReferenceMissing}}},
		"the host's namespace is not in the cache yet":                     {seen(func(o *lifecycle.Observed) { o.Copies.NamespaceUID = "" }), lifecycle.Nothing{}},

		// Early leaves.
		"the early leaf is recorded on the root (I6)":                            {seen(running), lifecycle.MarkPushed{}},
		"the early leaf runs and is recorded: no write (I5)":                     {seen(running, pushed(here, corev1.ConditionTrue)), lifecycle.Nothing{}},
		"all claims are bound and the Pod is not bound yet: the leaf stays":      {seen(running, pushed(here, corev1.ConditionTrue), claims(bound("data", here))), lifecycle.Nothing{}},
		"the claim is bound, but its PV is not in the cache yet":                 {seen(running, pushed(here, corev1.ConditionTrue), claims(with(bound("data", here), func(c *lifecycle.Claim) { c.Volume = nil }))), lifecycle.Nothing{}},
		"the scheduler removed its selection":                                    {seen(running, claims(with(asked("data", here), unselected))), lifecycle.RemoveLeaf{Why: "the scheduler has chosen another node"}},
		"the scheduler chose another node":                                       {seen(running, claims(asked("data", there))), lifecycle.RemoveLeaf{Why: "the scheduler has chosen another node"}},
		"the claim was bound in another member (I3)":                             {seen(running, claims(bound("data", there), asked("more", here))), lifecycle.RemoveLeaf{Why: `claim "data" is bound to volume "pv-data", which is not in member "cluster38"`}},
		"the claim was deleted":                                                  {seen(running, claims(lifecycle.Claim{Name: "data"})), lifecycle.RemoveLeaf{Why: `claim "data" is gone`}},
		"the Pod was bound to another node":                                      {seen(running, on("worker-1"), knows("worker-1", "")), lifecycle.RemoveLeaf{Why: `the Pod was bound to node "worker-1"`}},
		"the Pod was bound to another member's node":                             {seen(running, on(there.NodeName), knows(there.NodeName, there.ClusterID)), lifecycle.RemoveLeaf{Why: `the Pod was bound to node "kosmos-cluster39"`}},
		"the Pod was bound to an unknown node":                                   {seen(running, on("worker-1")), lifecycle.Nothing{}},
		"the Pod was bound to the node of the cluster's other registration (I4)": {seen(running, on("kosmos-renamed"), knows("kosmos-renamed", here.ClusterID)), lifecycle.Nothing{}},
		"the scheduler chose the node of the cluster's other registration":       {seen(running, pushed(here, corev1.ConditionTrue), claims(askedOn("kosmos-renamed")), knows("kosmos-renamed", here.ClusterID)), lifecycle.Nothing{}},
		"the root finished before it was bound: its leaf is removed": {
			seen(running, pushed(here, corev1.ConditionTrue), phase(corev1.PodFailed)), lifecycle.RemoveLeaf{Why: "the Pod has ended with phase Failed"}},
		"the node was cordoned, so the scheduler cannot bind the Pod of an early leaf": {
			seen(running, leafOnNode, pushed(here, corev1.ConditionTrue), unschedulable, cordoned), lifecycle.MarkPushed{}},
		"the scheduler cannot bind the Pod of an early leaf, as reported: no write (I5)": {
			seen(running, leafOnNode, pushed(here, corev1.ConditionTrue), unschedulable, cordoned, shownUnbindable), lifecycle.Nothing{}},
		"the scheduler cannot bind the Pod of an early leaf, which has no node in the member": {
			seen(running, pushed(here, corev1.ConditionTrue), unschedulable, cordoned), lifecycle.Nothing{}},
		"the scheduler could not bind the Pod of an early leaf, and tries again": {
			seen(running, leafOnNode, pushed(here, corev1.ConditionTrue), unschedulable), lifecycle.Nothing{}},
		"the node was uncordoned": {
			seen(running, leafOnNode, pushed(here, corev1.ConditionTrue), unschedulable, shownUnbindable), lifecycle.MarkPushed{}},
		"the scheduler has bound the Pod that it could not bind before": {
			seen(onNode, running, leafOnNode, pushed(here, corev1.ConditionTrue), shownUnbindable), lifecycle.MarkPushed{}},
		"the early leaf is already being deleted":                                                       {seen(running, leafDeleted(nil), claims(asked("data", there))), lifecycle.Nothing{}},
		"the early leaf was withdrawn: the Pod may be pushed again (I6)":                                {seen(pushed(here, corev1.ConditionTrue)), lifecycle.MarkWithdrawn{}},
		"the Pod was withdrawn, and the scheduler chose this node again: it is pushed again":            {seen(pushed(here, corev1.ConditionFalse)), leaf},
		"an early leaf runs in another member, whose controller decides alone":                          {seen(pushed(there, corev1.ConditionTrue), nominated(there.NodeName), claims(asked("data", there))), lifecycle.Nothing{}},
		"the leaf is gone but may have run, because its volume was bound":                               {seen(pushed(here, corev1.ConditionTrue), claims(leafBound(asked("data", here)))), lifecycle.Nothing{}},
		"the leaf is gone but may have run, because the host has bound the claim":                       {seen(pushed(here, corev1.ConditionTrue), claims(leafBound(bound("data", here)))), lifecycle.Nothing{}},
		"the leaf is gone and cannot have run, because one leaf claim was never bound":                  {seen(pushed(here, corev1.ConditionTrue), claims(leafBound(asked("data", here)), asked("more", here))), lifecycle.MarkWithdrawn{}},
		"the leaf and the leaf claim are gone, but the volume was mirrored":                             {seen(pushed(here, corev1.ConditionTrue), claims(mirrored(asked("data", here)))), lifecycle.Nothing{}},
		"the leaf and the leaf claim are gone, and the host has bound the claim to the mirrored volume": {seen(pushed(here, corev1.ConditionTrue), claims(mirrored(bound("data", here)))), lifecycle.Nothing{}},
		"the leaf and the leaf claim are gone, but another leaf claim was never bound":                  {seen(pushed(here, corev1.ConditionTrue), claims(mirrored(asked("data", here)), asked("more", here))), lifecycle.MarkWithdrawn{}},
		"the Pod was pushed to a member that was abandoned, and its claim is now placed here":           {seen(pushed(there, corev1.ConditionTrue)), lifecycle.MarkWithdrawn{}},
		"an unbound Pod without claims is ignored":                                                      {lifecycle.Observed{Member: here, Root: &corev1.Pod{}}, lifecycle.Nothing{}},
		"a Pod on another node is ignored":                                                              {seen(on("worker-1")), lifecycle.Nothing{}},
		"the root is gone: its leaf is removed after proof":                                             {seen(running, func(o *lifecycle.Observed) { o.Root = nil }), lifecycle.RemoveLeaf{RootGone: true, Why: "the Pod is gone"}},
		"the leaf belongs to an earlier Pod with the same name (I4)":                                    {seen(running, func(o *lifecycle.Observed) { o.Root.UID = "newer" }), lifecycle.RemoveLeaf{RootGone: true, Why: "the Pod is gone"}},
		"the leaf of an earlier Pod is already being deleted":                                           {seen(running, leafDeleted(nil), func(o *lifecycle.Observed) { o.Root.UID = "newer" }), lifecycle.Nothing{}},
		"neither the root nor the leaf exists":                                                          {lifecycle.Observed{Member: here}, lifecycle.Nothing{}},

		// Bound Pods.
		"the host bound the Pod here: its leaf is created":                                                  {seen(onNode), leaf},
		"an earlier version recorded the leaf without its UID":                                              {seen(onNode, running, pushed(here, corev1.ConditionTrue), noUID), lifecycle.MarkPushed{}},
		"the leaf of a bound Pod is recorded on the root (I6)":                                              {seen(onNode, running), lifecycle.MarkPushed{}},
		"the Pod failed because its disk cannot be provisioned here: its leaf is removed":                   {seen(onNode, running, pushed(here, corev1.ConditionTrue), gaveUp), lifecycle.RemoveLeaf{Why: "the member could not provision its disk"}},
		"the Pod failed because its disk cannot be provisioned here, and its leaf is already being deleted": {seen(onNode, running, pushed(here, corev1.ConditionTrue), gaveUp, leafGoing), lifecycle.Nothing{}},
		"a bound Pod runs: no write (I5)":                                                                   {seen(onNode, running, pushed(here, corev1.ConditionTrue)), lifecycle.Nothing{}},
		"the leaf of a bound Pod vanished: it is not created again":                                         {seen(onNode, pushed(here, corev1.ConditionTrue)), lifecycle.Nothing{}},
		"the leaf of a bound Pod vanished, and the condition is False: it is not created again":             {seen(onNode, pushed(here, corev1.ConditionTrue), reported), lifecycle.Nothing{}},
		"the leaf of an unbound Pod may have started, and the condition is False: it is not created again":  {seen(claims(leafBound(asked("data", here))), pushed(here, corev1.ConditionTrue), reported), lifecycle.Nothing{}},
		"the leaf runs, and the condition is False: the leaf is recorded again":                             {seen(onNode, running, pushed(here, corev1.ConditionTrue), reported), lifecycle.MarkPushed{}},
		"a user copied the annotation of an earlier Pod: the leaf is created":                               {seen(onNode, copiedUID), leaf},
		"the Pod has finished and its leaf is gone: it does not run again":                                  {seen(onNode, phase(corev1.PodSucceeded)), lifecycle.Nothing{}},
		"a bound Pod of a DaemonSet: the problem is reported":                                               {seen(onNode, daemonSet), says(v1alpha1.ReasonDaemonSet)},
		"the member is leaving, and the Pod has no leaf: leaf_pod fails it":                                 {seen(onNode, leaving), lifecycle.Nothing{}},
		"the member is leaving: the Pod does not go early":                                                  {seen(leaving), lifecycle.Nothing{}},
		"a manually bound Pod does not fit the node: leaf_pod fails it":                                     {seen(onNode, func(o *lifecycle.Observed) { o.Root.Spec.NodeSelector = map[string]string{"disk": "fast"} }), lifecycle.Nothing{}},
		"a manually bound Pod has an unbound claim":                                                         {seen(on(here.NodeName), claims(with(asked("data", here), unselected))), says(v1alpha1.ReasonClaimNotBound)},
		"a manually bound Pod has an unbound claim of another provisioner":                                  {seen(on(here.NodeName), claims(with(asked("data", here), func(c *lifecycle.Claim) { c.ProvisionedByXylem = false }))), says(v1alpha1.ReasonClaimNotBound)},
		"the claim of a bound Pod is bound, but not in the cache":                                           {seen(on(here.NodeName)), lifecycle.Nothing{}},
		"the host PV of a bound claim is not in the cache":                                                  {seen(onNode, claims(with(bound("data", here), func(c *lifecycle.Claim) { c.Volume, c.Root.Status.Phase = nil, corev1.ClaimBound }))), lifecycle.Nothing{}},
		"a manually bound Pod waits for a node in the member, and its claim shows why":                      {seen(on(here.NodeName), claims(with(asked("data", here), notPlaced))), lifecycle.RepeatProblem{Claim: "data", Problem: &mirror.Refusal{Reason: v1alpha1.ReasonNotScheduled}}},
		"a manually bound Pod refers to a missing claim":                                                    {seen(on(here.NodeName), claims(lifecycle.Claim{Name: "data"})), says(v1alpha1.ReasonClaimNotBound)},
		"the claim names a volume that is not bound to it":                                                  {seen(onNode, claims(with(bound("data", here), func(c *lifecycle.Claim) { c.Volume = nil }))), says(v1alpha1.ReasonClaimNotBound)},
		"the claim is being deleted: no further Pod can use it":                                             {seen(onNode, claims(with(bound("data", here), ending))), says(v1alpha1.ReasonClaimNotBound)},
		"the claim is being deleted while its Pod runs":                                                     {seen(onNode, running, pushed(here, corev1.ConditionTrue), claims(with(bound("data", here), ending))), lifecycle.Nothing{}},
		"the claim of its ephemeral volume is foreign":                                                      {seen(onNode, claims(with(bound("data", here), func(c *lifecycle.Claim) { c.NotOwnedByPod = true }))), says(v1alpha1.ReasonClaimForeign)},
		"the claim of its ephemeral volume is foreign, and the Pod is not bound yet":                        {seen(claims(with(asked("data", here), func(c *lifecycle.Claim) { c.NotOwnedByPod = true }))), lifecycle.Nothing{}},
		"the claim's volume is in another member":                                                           {seen(onNode, claims(bound("data", there))), says(v1alpha1.ReasonVolumeUnreachable)},
		"the claim is bound to an admin's PV that has not adopted its volume yet": {seen(onNode, claims(with(bound("data", here), func(c *lifecycle.Claim) {
			c.Volume.Labels, c.Volume.Finalizers, c.Volume.Spec.CSI.VolumeAttributes = nil, nil, nil
		}))), says(v1alpha1.ReasonAdoptionRefused)},
		"the claim is bound to a foreign PV":                  {seen(onNode, claims(with(bound("data", here), func(c *lifecycle.Claim) { c.Volume.Spec.CSI.Driver = "disk.example.com" }))), says(v1alpha1.ReasonVolumeUnreachable)},
		"the leaf claim must be created first":                {seen(onNode, claims(with(bound("data", here), func(c *lifecycle.Claim) { c.Leaf = nil }))), lifecycle.Nothing{}},
		"an image was changed":                                {seen(onNode, running, pushed(here, corev1.ConditionTrue), func(o *lifecycle.Observed) { o.Root.Spec.Containers[0].Image = "web:2" }), lifecycle.UpdateLeaf{}},
		"an image was changed, and the leaf is being deleted": {seen(onNode, running, leafDeleted(nil), pushed(here, corev1.ConditionTrue), func(o *lifecycle.Observed) { o.Root.Spec.Containers[0].Image = "web:2" }), lifecycle.Nothing{}},
		"an image was changed, and the leaf has finished": {seen(onNode, running, pushed(here, corev1.ConditionTrue), func(o *lifecycle.Observed) {
			o.Root.Spec.Containers[0].Image = "web:2"
			o.Leaf.Status.Phase = corev1.PodFailed
		}), lifecycle.Nothing{}},
		"an image was changed, and the root has finished":                                   {seen(onNode, running, pushed(here, corev1.ConditionTrue), phase(corev1.PodFailed), leafEnded, func(o *lifecycle.Observed) { o.Root.Spec.Containers[0].Image = "web:2" }), lifecycle.Nothing{}},
		"an ephemeral container was added":                                                  {seen(onNode, running, pushed(here, corev1.ConditionTrue), debugged), lifecycle.AddDebugContainers{}},
		"an ephemeral container was added and an image changed: the image is updated first": {seen(onNode, running, pushed(here, corev1.ConditionTrue), debugged, func(o *lifecycle.Observed) { o.Root.Spec.Containers[0].Image = "web:2" }), lifecycle.UpdateLeaf{}},
		"the Pod was resized":                                                               {seen(onNode, running, pushed(here, corev1.ConditionTrue), resized), lifecycle.ResizeLeaf{}},
		"the Pod was resized, and an ephemeral container was added":                         {seen(onNode, running, pushed(here, corev1.ConditionTrue), resized, debugged), lifecycle.ResizeLeaf{}},
		"the Pod was resized, and an image changed":                                         {seen(onNode, running, pushed(here, corev1.ConditionTrue), resized, func(o *lifecycle.Observed) { o.Root.Spec.Containers[0].Image = "web:2" }), lifecycle.ResizeLeaf{}},
		"the member rejects the resize":                                                     {seen(onNode, running, pushed(here, corev1.ConditionTrue), resized, resizeRejected), lifecycle.Nothing{}},
		"the member rejects the resize, and an image changed":                               {seen(onNode, running, pushed(here, corev1.ConditionTrue), resized, resizeRejected, func(o *lifecycle.Observed) { o.Root.Spec.Containers[0].Image = "web:2" }), lifecycle.UpdateLeaf{}},
		"the member rejects the resize, and an ephemeral container was added":               {seen(onNode, running, pushed(here, corev1.ConditionTrue), resized, resizeRejected, debugged), lifecycle.AddDebugContainers{}},
		"the Pod was resized, and the leaf is being deleted":                                {seen(onNode, running, leafGoing, pushed(here, corev1.ConditionTrue), resized), lifecycle.Nothing{}},
		"the Pod was resized, and the leaf has finished":                                    {seen(onNode, running, pushed(here, corev1.ConditionTrue), resized, leafEnded), lifecycle.Nothing{}},
		"the Pod was resized before its leaf existed":                                       {seen(onNode, resized), leaf},
		"the Pod was resized before the host bound it":                                      {seen(running, claims(asked("data", here)), pushed(here, corev1.ConditionTrue), resized), lifecycle.Nothing{}},
		"the leaf already has the ephemeral container: no write (I5)":                       {seen(onNode, running, pushed(here, corev1.ConditionTrue), debugged, func(o *lifecycle.Observed) { o.Leaf.Spec.EphemeralContainers = o.Root.Spec.EphemeralContainers }), lifecycle.Nothing{}},
		"only the leaf has an ephemeral container": {seen(onNode, running, pushed(here, corev1.ConditionTrue), debugged, func(o *lifecycle.Observed) {
			o.Leaf.Spec.EphemeralContainers, o.Root.Spec.EphemeralContainers = o.Root.Spec.EphemeralContainers, nil
		}), lifecycle.Nothing{}},
		"an ephemeral container was added, but the leaf was replaced (I8)":                                                  {seen(onNode, running, pushed(here, corev1.ConditionTrue), debugged, func(o *lifecycle.Observed) { o.Leaf.UID = "another" }), lifecycle.Nothing{}},
		"an ephemeral container was added, but the leaf is being deleted":                                                   {seen(onNode, running, leafDeleted(nil), pushed(here, corev1.ConditionTrue), debugged), lifecycle.Nothing{}},
		"an ephemeral container was added, but the leaf has finished":                                                       {seen(onNode, running, pushed(here, corev1.ConditionTrue), debugged, leafEnded), lifecycle.Nothing{}},
		"an ephemeral container was added before the host bound the Pod":                                                    {seen(running, claims(asked("data", here)), pushed(here, corev1.ConditionTrue), debugged), lifecycle.Nothing{}},
		"a restored member runs the leaf of a Pod that has failed":                                                          {seen(onNode, running, pushed(here, corev1.ConditionTrue), phase(corev1.PodFailed)), lifecycle.RemoveLeaf{Why: "the Pod has ended with phase Failed"}},
		"a restored member runs the leaf of a Pod that has succeeded":                                                       {seen(onNode, running, pushed(here, corev1.ConditionTrue), phase(corev1.PodSucceeded)), lifecycle.RemoveLeaf{Why: "the Pod has ended with phase Succeeded"}},
		"a restored member runs the leaf of a Pod that has succeeded, and the leaf is already being deleted: no write (I5)": {seen(onNode, running, pushed(here, corev1.ConditionTrue), phase(corev1.PodSucceeded), leafGoing), lifecycle.Nothing{}},
		"the root and the leaf have finished: no write (I5)":                                                                {seen(onNode, running, pushed(here, corev1.ConditionTrue), phase(corev1.PodSucceeded), leafEnded), lifecycle.Nothing{}},

		// Copies of shared volumes.
		"another member shares the claim's volume: the copy comes first":                     {seen(onNode, claims(copied())), toCopy},
		"the copy is bound: the leaf is created":                                             {seen(onNode, claims(copyBound())), leaf},
		"the copy comes after the references":                                                {seen(onNode, claims(copied()), lacks), lifecycle.AwaitReferences{&mirror.Refusal{Reason: v1alpha1.ReasonReferenceMissing}}},
		"the copy comes after the namespace":                                                 {seen(onNode, claims(copied()), func(o *lifecycle.Observed) { o.MemberNamespace = nil }), lifecycle.Nothing{}},
		"a Pod that is not admitted gets no copy":                                            {seen(onNode, claims(copied()), wantsTeam), says(v1alpha1.ReasonNamespaceNotAdmitted)},
		"a Pod that does not fit the node gets no copy":                                      {seen(onNode, claims(copied()), func(o *lifecycle.Observed) { o.Root.Spec.NodeSelector = map[string]string{"disk": "fast"} }), lifecycle.Nothing{}},
		"one claim needs a copy, and another one's leaf claim does not exist yet":            {seen(onNode, claims(copied(), with(bound("more", here), func(c *lifecycle.Claim) { c.Leaf = nil }))), lifecycle.Nothing{}},
		"one claim needs a copy, and another one's leaf claim exists":                        {seen(onNode, claims(copied(), bound("more", here))), toCopy},
		"the claim is being deleted: the Pod gets no copy":                                   {seen(onNode, claims(with(copied(), ending))), says(v1alpha1.ReasonClaimNotBound)},
		"the Pod has ended: it gets no copy":                                                 {seen(onNode, claims(copied()), phase(corev1.PodSucceeded)), lifecycle.Nothing{}},
		"only a copied claim is bound, and the Pod is not: no early push":                    {seen(claims(copied())), lifecycle.Nothing{}},
		"one claim needs a copy, and the other waits for its consumer: the copy comes first": {seen(claims(copied(), asked("more", here))), toCopy},
		"one claim has a copy, and the other waits for its consumer":                         {seen(claims(copyBound(), asked("more", here))), leaf},
		"the early leaf uses a copy: it stays":                                               {seen(running, pushed(here, corev1.ConditionTrue), claims(copyBound(), asked("more", here))), lifecycle.Nothing{}},
		"the copy of a Pod that waits for a node was deleted: it is created again":           {seen(onNode, running, pushed(here, corev1.ConditionTrue), claims(copied())), toCopy},
		"the copy of a Pod that runs was deleted: the member keeps it":                       {seen(onNode, running, leafOnNode, pushed(here, corev1.ConditionTrue), claims(copied())), lifecycle.Nothing{}},
		"the copy of a leaf that is being deleted was deleted":                               {seen(onNode, running, leafGoing, pushed(here, corev1.ConditionTrue), claims(copied())), lifecycle.Nothing{}},
		"the leaf is recorded before its copy is created again (I6)":                         {seen(onNode, running, claims(copied())), lifecycle.MarkPushed{}},

		// Deletion.
		"the user deletes the Pod: its leaf is deleted with the same grace period":    {seen(onNode, running, deleted(ptr.To[int64](7))), lifecycle.RemoveLeaf{Grace: ptr.To[int64](7), Why: "the Pod is being deleted"}},
		"the root and the leaf are being deleted":                                     {seen(onNode, running, deleted(ptr.To[int64](7)), leafDeleted(ptr.To[int64](7))), lifecycle.Nothing{}},
		"the user shortens the grace period: the leaf is deleted again":               {seen(onNode, running, deleted(ptr.To[int64](1)), leafDeleted(ptr.To[int64](7))), lifecycle.RemoveLeaf{Grace: ptr.To[int64](1), Why: "the Pod is being deleted"}},
		"the leaf is gone, and leaf_pod has not written the final status yet":         {seen(onNode, pushed(here, corev1.ConditionTrue), deleted(nil), phase(corev1.PodRunning)), lifecycle.Nothing{}},
		"the leaf is gone and the final status is written: the deletion is completed": {seen(onNode, pushed(here, corev1.ConditionTrue), deleted(nil), phase(corev1.PodSucceeded)), lifecycle.FinishRoot{}},
		"a Pod that was never pushed is being deleted: leaf_pod fails it first":       {seen(onNode, deleted(nil)), lifecycle.Nothing{}},
		"a Pod that was never pushed has failed: the deletion is completed":           {seen(onNode, deleted(nil), phase(corev1.PodFailed)), lifecycle.FinishRoot{}},
		"a DaemonSet's Pod is being deleted: leaf_pod fails it first":                 {seen(onNode, daemonSet, deleted(nil)), lifecycle.Nothing{}},
		"a terminating Pod on another node is ignored":                                {seen(on("worker-1"), deleted(nil), phase(corev1.PodFailed)), lifecycle.Nothing{}},
		"a terminating Pod that is not bound is ignored":                              {seen(deleted(nil), phase(corev1.PodFailed)), lifecycle.Nothing{}},
		"the root of an early leaf is being deleted":                                  {seen(running, deleted(ptr.To[int64](0))), lifecycle.RemoveLeaf{Grace: ptr.To[int64](0), Why: "the Pod is being deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lifecycle.NextDecision(tc.observed), decisions); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// decisions compares decisions by type, problems by reason, and Pods by name. Package podspec
// tests the drift.
var decisions = cmp.Options{
	cmp.Comparer(func(a, b *mirror.Refusal) bool {
		return (a == nil) == (b == nil) && (a == nil || a.Reason == b.Reason && (a.Message == "") != (b.Message == ""))
	}),
	cmp.Comparer(func(a, b *corev1.Pod) bool { return a.Namespace == b.Namespace && a.Name == b.Name }),
	cmp.Comparer(func(a, b lifecycle.UpdateLeaf) bool { return a.Drift.NeedsUpdate() || b.Drift.NeedsUpdate() }),
	cmp.Comparer(func(a, b lifecycle.ResizeLeaf) bool { return a.Drift.Resizes() || b.Drift.Resizes() }),
}

// A live read may show that the volume of a copied claim is gone, although the cache shows its copy.
func TestCopiedVolumeIsGone(t *testing.T) {
	gone := with(copied(), func(c *lifecycle.Claim) { c.Volume = nil })
	if d, copies := lifecycle.NextDecision(seen(onNode, claims(gone))).(lifecycle.CopyVolume); copies {
		t.Errorf("got %v, want no copy", d)
	}
}

func TestLeafHasTheOriginOfItsRoot(t *testing.T) {
	made, ok := lifecycle.NextDecision(seen()).(lifecycle.CreateLeaf)
	if !ok {
		t.Fatalf("decision is %T, want create", lifecycle.NextDecision(seen()))
	}
	if origin, ours := mirror.LeafOriginFromHost(here.HostID, made.Leaf); !ours || origin != mirror.OriginForRoot(here.HostID, rootPod()) {
		t.Errorf("the leaf's origin is %v, set by this host: %t; want %v", origin, ours, mirror.OriginForRoot(here.HostID, rootPod()))
	}
}

// Each message names the object that the user must change.
func TestMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		observed lifecycle.Observed
		want     []string
	}{
		"a claim that the scheduler does not bind": {seen(on(here.NodeName), claims(with(asked("data", here), unselected))), []string{`claim "data"`, here.NodeName, "Let the scheduler set spec.nodeName"}},
		"a volume that does not exist":             {seen(onNode, claims(with(bound("data", here), func(c *lifecycle.Claim) { c.Volume = nil }))), []string{`claim "data" names PersistentVolume "pv-data"`, "does not exist"}},
		"an unreachable volume":                    {seen(onNode, claims(bound("data", there))), []string{"pv-data", `member "cluster38"`}},
		"DaemonSet":                                {seen(onNode, daemonSet), []string{v1alpha1.LabelVirtualNode + "=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, ok := lifecycle.NextDecision(tc.observed).(lifecycle.Nothing)
			if !ok || d.Problem == nil {
				t.Fatalf("decision is %#v, want a problem", lifecycle.NextDecision(tc.observed))
			}
			for _, want := range tc.want {
				if !strings.Contains(d.Problem.Message, want) {
					t.Errorf("message %q does not contain %q", d.Problem.Message, want)
				}
			}
		})
	}
}

// ofHost returns a claim that is bound to a volume of the host without a node affinity.
func ofHost(name string) lifecycle.Claim {
	return with(bound(name, here), func(c *lifecycle.Claim) {
		c.Leaf, c.Volume = nil, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name},
			Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/"}}},
		}
	})
}
