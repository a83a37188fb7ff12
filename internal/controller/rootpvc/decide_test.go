package rootpvc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

var (
	here = mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"}
	now  = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
)

const elsewhereID, elsewhereNode = "id39", "kosmos-cluster39"

// seen is a claim that the scheduler has just asked for on this member's node,
// and that is placed here; nothing of it is in the member yet.
func seen(change ...func(*scene)) observe.Claim { return sceneOf(change...).observe() }

func sceneOf(change ...func(*scene)) scene {
	o := scene{
		member: here,
		root: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid", Annotations: map[string]string{
				route.AnnSelectedNode: here.NodeName, v1alpha1.AnnotationPlacedIn: here.ClusterID,
			}},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: ptr.To("disk"), Resources: size("1Gi"),
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
		},
		class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: v1alpha1.ProvisionerName,
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)},
		namespace:     &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelHost: here.HostID}}},
		memberClasses: []string{"slow", "disk"},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func size(s string) corev1.VolumeResourceRequirements {
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(s)}}
}

func selected(node string) func(*scene) {
	return func(o *scene) { set(o.root, route.AnnSelectedNode, node) }
}

func placedIn(id string) func(*scene) {
	return func(o *scene) { set(o.root, v1alpha1.AnnotationPlacedIn, id) }
}

func set(c *corev1.PersistentVolumeClaim, key, value string) {
	if value == "" {
		delete(c.Annotations, key)
		return
	}
	c.Annotations[key] = value
}

// stampedVolume: the leaf PV has the stamp of its leaf claim, and the note of its policy.
func stampedVolume(o *scene) {
	o.origin.Stamp(o.leafVolume)
	o.leafVolume.Annotations[v1alpha1.AnnotationReclaimPolicy] = string(o.leafVolume.Spec.PersistentVolumeReclaimPolicy)
}

func retainedVolume(o *scene) {
	o.leafVolume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// hostHolds: the host has a PV for the leaf claim's volume.
func hostHolds(o *scene) { o.hosts = []corev1.PersistentVolume{*mirrorFor(o)} }

func mirrorFor(o *scene) *corev1.PersistentVolume {
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}
	return hostpv.Mirror(o.leafVolume, root, corev1.PersistentVolumeReclaimRetain, here)
}

// replaced: the leaf PV of that name has another UID than the host's PV records.
func replaced(o *scene) {
	o.leafVolume = o.leafVolume.DeepCopy()
	o.leafVolume.UID = "copied-uid"
}

// memberRestored: the leaf claim is of that age, and the member was restored at now.
func memberRestored(age time.Duration) func(*scene) {
	return func(o *scene) {
		o.restores.Member, o.leaf.CreationTimestamp = now.Time, metav1.NewTime(now.Add(-age))
	}
}

// hostRestored: the leaf claim is of that age, and the host was restored at now.
func hostRestored(age time.Duration) func(*scene) {
	return func(o *scene) {
		o.restores.Host, o.leaf.CreationTimestamp = now.Time, metav1.NewTime(now.Add(-age))
	}
}

func unconfirmed(o *scene) { o.restores.HostUnconfirmed = true }

// pointsBack: the leaf claim waits, and its volume names a claim of that UID.
func pointsBack(uid types.UID) func(*scene) {
	return func(o *scene) {
		o.leaf.Status.Phase, o.leafVolume.Status.Phase = corev1.ClaimPending, corev1.VolumeReleased
		o.leafVolume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: uid}
	}
}

// away: the root is bound to a volume that is not this member's.
func away(o *scene) { o.boundAway = true }

// pushed: the leaf claim is there, unbound.
func pushed(o *scene) {
	leaf, err := pvc.Translate(o.root, ptr.To("disk"), here)
	if err != nil {
		panic(err)
	}
	leaf.UID, leaf.ResourceVersion = "leaf-uid", "7"
	leaf.Status.Phase = corev1.ClaimPending
	o.leaf, o.origin = leaf, mirror.OriginFor(here.HostID, o.root)
}

// leafBound: the leaf claim is there and bound to a PV that we have not stamped.
func leafBound(o *scene) {
	pushed(o)
	o.leaf.Spec.VolumeName, o.leaf.Status.Phase = "pv-1", corev1.ClaimBound
	leafMade(o)
	o.leafVolume.Status.Phase = corev1.VolumeBound
}

// leafMade: the member has a PV for the leaf claim.
func leafMade(o *scene) {
	o.leafVolume = leafPV()
	o.leafVolume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: o.leaf.UID}
}

func leafPV() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "pv-uid"},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              "gp3", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}},
		}}
}

// bound: the root is bound to the mirror of pv-1, which the member has; there
// is no leaf claim unless pushed or leafBound came before.
func bound(o *scene) {
	if o.leafVolume == nil {
		o.leafVolume = leafPV()
		o.leafVolume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "earlier-leaf"}
		o.leafVolume.Status.Phase = corev1.VolumeReleased
	}
	o.origin = mirror.OriginFor(here.HostID, o.root)
	stampedVolume(o)
	retainedVolume(o)
	pv := hostpv.Mirror(o.leafVolume, o.root, corev1.PersistentVolumeReclaimDelete, here)
	pv.Status.Phase = corev1.VolumeBound
	o.hosts = []corev1.PersistentVolume{*pv}
	boundTo("pv-1")(o)
}

// nudged: the member's PV controller was made to look at the leaf claim again.
func nudged(o *scene) {
	o.leaf.Annotations[v1alpha1.AnnotationVolumeUID] = string(o.leafVolume.UID)
}

// hostReleased: the host's PV controller has released the host PV.
func hostReleased(o *scene) { o.hosts[0].Status.Phase = corev1.VolumeReleased }

// handedOn: an admin freed the host PV, and the host bound it to a claim of another name, which
// is placed nowhere yet.
func handedOn(o *scene) {
	o.other = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "other-uid"}}
	o.other.Spec.VolumeName, o.other.Status.Phase = o.hosts[0].Name, corev1.ClaimBound
	o.hosts[0].Spec.ClaimRef.Name, o.hosts[0].Spec.ClaimRef.UID = o.other.Name, o.other.UID
}

// usedAgain: the same, and the host bound it to the root.
func usedAgain(o *scene) {
	o.root.UID = "newer"
	o.hosts[0].Spec.ClaimRef.UID = o.root.UID
}

// heldByLiving: an admin freed the volume of another claim, which lives, for the root.
func heldByLiving(o *scene) {
	o.other = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "other-uid"}}
	otherPushed(o)
	o.otherLeaf.Spec.VolumeName, o.leafVolume.Spec.ClaimRef.UID, o.leafVolume.Spec.ClaimRef.Name = "pv-1", o.otherLeaf.UID, o.otherLeaf.Name
	mirror.OriginFor(here.HostID, o.other).Stamp(o.leafVolume)
	retainedVolume(o)
	o.leaf = nil
}

// otherPushed: the other claim has a leaf claim, which names no volume.
func otherPushed(o *scene) {
	o.otherLeaf = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "other-leaf"}}
	mirror.OriginFor(here.HostID, o.other).Stamp(o.otherLeaf)
}

// otherPlaced: the other claim is placed here.
func otherPlaced(o *scene) {
	o.other.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}
}

// comesBack: the host has the claim anew, which asks for the volume that the leaf
// claim of the earlier one holds.
func comesBack(o *scene) {
	leafBound(o)
	o.leafVolume.Spec.StorageClassName = "disk"
	o.leafVolume.Spec.AccessModes = o.root.Spec.AccessModes
	stampedVolume(o)
	retainedVolume(o)
	o.leafVolume.Annotations[v1alpha1.AnnotationNamespaceUID] = "namespace-uid"
	o.root.UID, o.root.Spec.VolumeName = "new-uid", "pv-1"
	o.asked, o.tenant = o.leafVolume, "namespace-uid"
}

// leafTerminating: somebody in the member deletes the volume that was made for the leaf claim.
func leafTerminating(o *scene) {
	if o.leafVolume == nil {
		leafMade(o)
	}
	o.leafVolume.DeletionTimestamp = &now
}

// mirrorTerminating: somebody deletes the host PV before it was bound.
func mirrorTerminating(o *scene) {
	o.mirror = hostpv.Mirror(leafPV(), o.root, corev1.PersistentVolumeReclaimDelete, here)
	o.mirror.DeletionTimestamp = &now
}

// inZone: the class keeps claims to a zone.
func inZone(zone string) func(*scene) {
	return func(o *scene) {
		o.class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: corev1.LabelTopologyZone, Values: []string{zone}},
		}}}
	}
}

// nodeIn: the member's node is in a zone, or in none.
func nodeIn(zone string) func(*scene) {
	return func(o *scene) {
		o.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: here.NodeName, Labels: map[string]string{v1alpha1.LabelClusterID: here.ClusterID}}}
		if zone != "" {
			o.node.Labels[corev1.LabelTopologyZone] = zone
		}
	}
}

func leafLost(o *scene)  { o.leaf.Status.Phase = corev1.ClaimLost }
func newTenant(o *scene) { o.tenant = "another-uid" }
func allowed(o *scene)   { o.rules = adopting("pv-1") }
func noLeaf(o *scene)    { o.leaf, o.leafVolume, o.origin = nil, nil, mirror.Origin{} }

// boundTo another volume, which is none of this member's.
func boundTo(name string) func(*scene) {
	return func(o *scene) { o.root.Spec.VolumeName, o.root.Status.Phase = name, corev1.ClaimBound }
}

func rootGone(o *scene)     { o.root, o.class = nil, nil }
func rootNewer(o *scene)    { o.root.UID = "newer" }
func rootDeleted(o *scene)  { o.root.DeletionTimestamp = &now }
func leafDeleted(o *scene)  { o.leaf.DeletionTimestamp = &now }
func noClass(o *scene)      { o.class = nil }
func noLeafVolume(o *scene) { o.leafVolume = nil }

func grown(to string) func(*scene) {
	return func(o *scene) { o.root.Spec.Resources = size(to) }
}

func says(reason string) decision { return decision{reason: reason} }

func fails(o *scene) {
	o.attempt.Provisioning = &mirror.Refusal{Reason: v1alpha1.ReasonProvisioningFailed, Message: "member \"cluster38\" cannot provision the volume: no"}
}

var unschedulable = &mirror.Refusal{Reason: v1alpha1.ReasonPodUnschedulable, Message: `member "cluster38" has no node for Pod "web": no`}

func usedBy(pods ...volume.Consumer) func(*scene) {
	return func(o *scene) { o.attempt.Consumers = pods }
}

func steeredTo(node string) func(*scene) {
	return func(o *scene) { set(o.root, v1alpha1.AnnotationSteeredTo, node) }
}

// A claim that cannot go elsewhere says so.
func TestFailureOfAClaimThatIsHeld(t *testing.T) {
	o := seen(pushed, fails, usedBy(volume.Consumer{Name: "api"}, volume.Consumer{Name: "web", Bound: "cache"}))
	said := o.Observed.ReportFailure().Message
	for _, part := range []string{"cannot provision the volume: no", `Pod "web"`, `claim "cache"`, "Xylem tries no other member"} {
		if !strings.Contains(said, part) {
			t.Errorf("%q does not say %q", said, part)
		}
	}
}

func TestDecide(t *testing.T) {
	leaf := takes(lifecycle.CreateClaim)
	again := decision{step: lifecycle.CreateClaim, volume: "pv-1"}
	for name, tc := range map[string]struct {
		observed observe.Claim
		want     decision
	}{
		"neither root nor leaf": {observe.Claim{}, decision{}},

		// Never bound.
		"asked for here: placed before the first write in the member (I3)":   {seen(placedIn("")), takes(lifecycle.Place)},
		"placed here: the leaf claim is made":                                {seen(), leaf},
		"the leaf claim is made: the member's part":                          {seen(pushed), decision{}},
		"placed in another member: it waits, and nothing is made (I3)":       {seen(placedIn(elsewhereID)), says(v1alpha1.ReasonPlacedElsewhere)},
		"placed in another member, and a leaf is here: nothing is made (I3)": {seen(pushed, placedIn(elsewhereID)), says(v1alpha1.ReasonPlacedElsewhere)},
		"nobody asked for it":                     {seen(selected(""), placedIn("")), decision{}},
		"asked for on another node":               {seen(selected(elsewhereNode), placedIn("")), decision{}},
		"asked for on another node, placed there": {seen(selected(elsewhereNode), placedIn(elsewhereID)), decision{}},
		"a leaf of this root without placement, after a restore: placed anew (I6)": {
			seen(pushed, placedIn(""), hostRestored(time.Minute)), takes(lifecycle.Place)},
		"the same, the restore is not confirmed":                               {seen(pushed, placedIn(""), hostRestored(time.Minute), unconfirmed), takes(lifecycle.Place)},
		"the same, the leaf is younger than the restore: it is withdrawn (I8)": {seen(pushed, placedIn(""), hostRestored(-time.Minute)), takes(lifecycle.Withdraw)},
		"a leaf without placement, no restore: it is withdrawn (I8)":           {seen(pushed, placedIn("")), takes(lifecycle.Withdraw)},
		"a bound leaf without placement, no restore: reported (I8)":            {seen(leafBound, placedIn("")), decision{reason: v1alpha1.ReasonAdoptionUnconfirmed, live: true}},
		"the same, and an admin allows it":                                     {seen(leafBound, placedIn(""), allowed), takes(lifecycle.Place)},
		"the same, after a restore":                                            {seen(leafBound, placedIn(""), hostRestored(time.Minute)), takes(lifecycle.Place)},
		"the same, the restore is not confirmed, and the scheduler chose it":   {seen(leafBound, placedIn(""), hostRestored(time.Minute), unconfirmed), takes(lifecycle.Place)},
		"the class is another provisioner's":                                   {seen(func(o *scene) { o.class.Provisioner = "disk.example.com" }), decision{}},
		"the class is gone from the host":                                      {seen(noClass), decision{}},
		"the class binds at once: host_claim says why not":                     {seen(func(o *scene) { o.class.VolumeBindingMode = nil }), decision{}},
		"the class is of promise mode": {seen(func(o *scene) {
			o.class.Parameters = map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise}
		}), decision{}},
		"the class has parameters that nobody knows": {seen(func(o *scene) { o.class.Parameters = map[string]string{v1alpha1.ParameterProvisioning: "magic"} }), decision{}},
		"the class keeps claims off the member: the scheduler is told": {seen(func(o *scene) {
			o.class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: v1alpha1.LabelClusterID, Values: []string{elsewhereID}},
			}}}
		}), decision{step: lifecycle.Unselect, reason: v1alpha1.ReasonClassKeepsOff}},
		"the class keeps claims out of the node's zone, which a tenant chose (I8)":   {seen(inZone("eu-1"), nodeIn("eu-2")), decision{step: lifecycle.Unselect, reason: v1alpha1.ReasonClassKeepsOff}},
		"the class keeps claims to a zone, and the node has none":                    {seen(inZone("eu-1"), nodeIn("")), decision{step: lifecycle.Unselect, reason: v1alpha1.ReasonClassKeepsOff}},
		"the class keeps claims to the node's zone":                                  {seen(inZone("eu-1"), nodeIn("eu-1")), leaf},
		"the class keeps claims to a zone, and a volume of the node's is used again": {seen(bound, inZone("eu-1"), nodeIn("eu-2")), again},
		"the member lacks the class: the choice is undone":                           {seen(func(o *scene) { o.memberClasses = []string{"slow"} }), decision{step: lifecycle.Unselect, reason: v1alpha1.ReasonClassNotFound}},
		"the registration maps the class":                                            {seen(func(o *scene) { o.rules = mapping("slow") }), leaf},
		"the namespace is somebody else's: nothing is written, placed-in neither (I4)": {
			seen(placedIn(""), func(o *scene) { o.namespace.Labels = nil }), says(v1alpha1.ReasonNamespaceConflict)},
		"the namespace is not made yet": {seen(func(o *scene) { o.namespace = nil }), decision{}},
		"the namespace lacks the labels that the member wants: nothing is written, placed-in neither": {
			seen(placedIn(""), wantsTeam), says(v1alpha1.ReasonNamespaceNotAdmitted)},
		"the namespace has them":                                          {seen(wantsTeam, ofTeam), leaf},
		"the namespace is not in the cache yet":                           {seen(wantsTeam, func(o *scene) { o.unlisted = true }), decision{}},
		"the namespace lost them after the claim was pushed":              {seen(pushed, wantsTeam), decision{}},
		"the claim wants a copy of another":                               {seen(copying()), leaf},
		"it is not known where that is":                                   {seen(copying(), func(o *scene) { o.from = nil }), decision{}},
		"it waits for that, not placed: host_claim reports it":            {seen(copying(notReady), placedIn("")), decision{}},
		"it waits for that":                                               {seen(copying(notReady)), says(v1alpha1.ReasonSourceNotReady)},
		"that is in another member":                                       {seen(copying(func(f *volume.From) { f.At.ClusterID = elsewhereID })), says(v1alpha1.ReasonSourceElsewhere)},
		"that is not recorded":                                            {seen(copying(), func(o *scene) { delete(o.root.Annotations, v1alpha1.AnnotationSource) }, placedIn("")), decision{}},
		"that was re-created":                                             {seen(copying(func(f *volume.From) { f.At.UID = "newer" }), placedIn("")), decision{}},
		"the member has no counterpart of that":                           {seen(copying(func(f *volume.From) { f.Claim = nil })), says(v1alpha1.ReasonSourceNotReady)},
		"the counterpart is another root's":                               {seen(copying(func(f *volume.From) { f.Origin.UID = "other" })), says(v1alpha1.ReasonSourceNotReady)},
		"the counterpart is being deleted":                                {seen(copying(func(f *volume.From) { f.Claim.DeletionTimestamp = &metav1.Time{} })), says(v1alpha1.ReasonSourceNotReady)},
		"the counterpart has another volume":                              {seen(copying(func(f *volume.From) { f.Volume.UID = "other" })), says(v1alpha1.ReasonSourceNotReady)},
		"the class is of another driver":                                  {seen(copying(func(f *volume.From) { f.Class.Provisioner = "other.example.com" })), says(v1alpha1.ReasonSourceMismatch)},
		"the member lacks the class: the selection stays, as source's":    {seen(copying(), func(o *scene) { o.memberClasses = []string{"slow"} }), says(v1alpha1.ReasonClassNotFound)},
		"the copy is being created":                                       {seen(pushed, copying(), asksToo), decision{}},
		"its provisioner fails: no other member is tried":                 {seen(pushed, copying(), asksToo, fails), says(v1alpha1.ReasonProvisioningFailed)},
		"what it was to be copied from is gone: withdrawn":                {seen(pushed, copying(func(f *volume.From) { f.Claim = nil }), asksToo), takes(lifecycle.Withdraw)},
		"another claim has the name of what it is copied from: withdrawn": {seen(pushed, copying(func(f *volume.From) { f.Origin.UID = "other" }), asksToo), takes(lifecycle.Withdraw)},
		"the leaf claim is of nothing: its volume is not used":            {seen(leafBound, copying()), says(v1alpha1.ReasonSourceMismatch)},

		"the claim is restored from a snapshot":                         {seen(restoring()), leaf},
		"the snapshot is in another member":                             {seen(restoring(func(f *volume.From) { f.At.ClusterID = elsewhereID })), says(v1alpha1.ReasonSourceElsewhere)},
		"the member's snapshots cannot be read":                         {seen(restoring(unread)), says(v1alpha1.ReasonSourceNotReady)},
		"the member has no counterpart of the snapshot":                 {seen(restoring(func(f *volume.From) { f.Snapshot = nil })), says(v1alpha1.ReasonSourceNotReady)},
		"the counterpart is another snapshot's":                         {seen(restoring(func(f *volume.From) { f.Origin.UID = "other" })), says(v1alpha1.ReasonSourceNotReady)},
		"the counterpart of the snapshot was replaced":                  {seen(restoring(func(f *volume.From) { f.Snapshot.UID = "other" })), says(v1alpha1.ReasonSourceNotReady)},
		"the counterpart of the snapshot is being deleted":              {seen(restoring(func(f *volume.From) { f.Snapshot.DeletionTimestamp = &metav1.Time{} })), says(v1alpha1.ReasonSourceNotReady)},
		"the counterpart has no content":                                {seen(restoring(func(f *volume.From) { f.Content = nil })), says(v1alpha1.ReasonSourceNotReady)},
		"the counterpart has another content":                           {seen(restoring(func(f *volume.From) { f.Content.UID = "other" })), says(v1alpha1.ReasonSourceNotReady)},
		"the counterpart is not ready":                                  {seen(restoring(func(f *volume.From) { f.Content.Status.ReadyToUse = nil })), says(v1alpha1.ReasonSourceNotReady)},
		"the snapshot is of another driver than the class":              {seen(restoring(func(f *volume.From) { f.Content.Spec.Driver = "other.example.com" })), says(v1alpha1.ReasonSourceMismatch)},
		"the restored volume is being created":                          {seen(pushed, restoring(), asksToo), decision{}},
		"the same, and the member's snapshots cannot be read":           {seen(pushed, restoring(unread), asksToo), decision{}},
		"the snapshot is gone from the member: withdrawn":               {seen(pushed, restoring(func(f *volume.From) { f.Snapshot = nil }), asksToo), takes(lifecycle.Withdraw)},
		"another snapshot has its name in the member: withdrawn":        {seen(pushed, restoring(func(f *volume.From) { f.Origin.UID = "other" }), asksToo), takes(lifecycle.Withdraw)},
		"the leaf claim is not of the snapshot: its volume is not used": {seen(leafBound, restoring()), says(v1alpha1.ReasonSourceMismatch)},
		"its Pod has a claim whose source is elsewhere":                 {seen(placedIn(""), usedBy(volume.Consumer{Apart: "copy", Here: true})), decision{}},
		"its other Pod has not":                                         {seen(placedIn(""), usedBy(volume.Consumer{Apart: "copy"}, volume.Consumer{Here: true})), takes(lifecycle.Place)},
		"the claim wants a copy of what no registration lists": {seen(func(o *scene) {
			o.root.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To("example.com"), Kind: "Image", Name: "i"}
		}), says(v1alpha1.ReasonDataSourceUnsupported)},
		"the claim is being deleted: nothing is made for it": {seen(rootDeleted), decision{}},
		"the claim is being deleted, a Pod still holds it":   {seen(pushed, rootDeleted), decision{}},

		// The member fails it.
		"its provisioner fails: the claim says so":                        {seen(pushed, fails), says(v1alpha1.ReasonProvisioningFailed)},
		"its scheduler finds no node for the consumer":                    {seen(pushed, usedBy(volume.Consumer{Problem: unschedulable})), says(v1alpha1.ReasonPodUnschedulable)},
		"both: what the provisioner says is worth more":                   {seen(pushed, fails, usedBy(volume.Consumer{Problem: unschedulable})), says(v1alpha1.ReasonProvisioningFailed)},
		"both, placed in another member: that one waits":                  {seen(pushed, fails, placedIn(elsewhereID)), says(v1alpha1.ReasonPlacedElsewhere)},
		"steered here: nothing is written before the scheduler agrees":    {seen(placedIn(""), steeredTo(here.NodeName), usedBy(volume.Consumer{})), decision{}},
		"steered here, no Pod uses it":                                    {seen(placedIn(""), steeredTo(here.NodeName)), decision{}},
		"steered here, and the scheduler agrees: placed (I3)":             {seen(placedIn(""), steeredTo(here.NodeName), usedBy(volume.Consumer{}, volume.Consumer{Here: true})), takes(lifecycle.Place)},
		"steered here, and placed: the leaf claim is made":                {seen(steeredTo(here.NodeName)), leaf},
		"steered here, the first member not proven empty yet (I3)":        {seen(placedIn(elsewhereID), steeredTo(here.NodeName), usedBy(volume.Consumer{Here: true})), says(v1alpha1.ReasonPlacedElsewhere)},
		"steered elsewhere once, and the scheduler chose this one itself": {seen(placedIn(""), steeredTo(elsewhereNode)), takes(lifecycle.Place)},
		"steered elsewhere: the unbound leaf is withdrawn":                {seen(pushed, fails, steeredTo(elsewhereNode), selected(elsewhereNode)), takes(lifecycle.Withdraw)},

		// The scheduler changed its mind.
		"the scheduler took its choice back: the unbound leaf is withdrawn":       {seen(pushed, selected("")), takes(lifecycle.Withdraw)},
		"the scheduler chose another node: the unbound leaf is withdrawn":         {seen(pushed, selected(elsewhereNode)), takes(lifecycle.Withdraw)},
		"the same, and the class is gone from the host (I1)":                      {seen(pushed, selected(""), noClass), takes(lifecycle.Withdraw)},
		"withdrawn: placed-in is taken off, once the member is proven empty (I3)": {seen(selected("")), takes(lifecycle.Unplace)},
		"withdrawn, and the class is gone from the host: nothing is held up (I1)": {seen(selected(""), noClass), takes(lifecycle.Unplace)},
		"no longer wanted, and bound already: it stays, there is to be one (I3)":  {seen(leafBound, selected(elsewhereNode)), decision{}},
		"no longer wanted, its leaf ends":                                         {seen(pushed, leafDeleted, selected("")), decision{}},
		"the claim is being deleted and no longer wanted: the leaf is withdrawn":  {seen(pushed, rootDeleted, selected("")), takes(lifecycle.Withdraw)},

		// The root is gone.
		"the root is gone, the leaf is unbound: withdrawn, once that is proven": {seen(pushed, rootGone), decision{step: lifecycle.Withdraw, rootGone: true}},
		"the root was made anew, the leaf is the old one's":                     {seen(pushed, rootNewer), decision{step: lifecycle.Withdraw, rootGone: true}},
		"the root is gone, its volume is retained and nothing stands for it: the name is freed, the data stay (I1, I2)": {
			seen(leafBound, stampedVolume, retainedVolume, rootGone), takes(lifecycle.DeleteRetained)},
		"the root is gone, and the host's volume decides (I2)":                               {seen(leafBound, stampedVolume, retainedVolume, hostHolds, rootGone), decision{}},
		"the same, and it is released: root_pv keeps the data and deletes the leaf (I2)":     {seen(leafBound, stampedVolume, retainedVolume, hostHolds, hostReleased, rootGone), decision{owner: lifecycle.RootPV, step: lifecycle.DeleteClaim}},
		"the same, and both sides' policies are Delete: root_pv destroys it (I2)":            {seen(leafBound, bound, hostReleased, rootGone), decision{owner: lifecycle.RootPV, step: lifecycle.SetDelete}},
		"the root is gone, its volume is at Delete and nothing stands for it (I2)":           {seen(leafBound, stampedVolume, rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Secure}},
		"the root is gone, a volume that outlives its claim was never mirrored (I1)":         {seen(leafBound, retainedVolume, rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Stamp}},
		"used again, the volume points at its new claim: the member's PV controller is told": {seen(leafBound, bound, pointsBack("leaf-uid")), takes(lifecycle.Touch)},
		"used again, and told already":                                                       {seen(leafBound, bound, pointsBack("leaf-uid"), nudged), decision{}},
		"used again, the volume does not point at its new claim yet":                         {seen(leafBound, bound, pointsBack("another")), decision{owner: lifecycle.LeafPV, step: lifecycle.Repoint}},
		"the root is gone, the volume was never mirrored: destroyed on proof (I1)":           {seen(leafBound, rootGone), takes(lifecycle.DestroyUnmirrored)},
		"the root was made anew, the old volume was never mirrored (I1)":                     {seen(leafBound, rootNewer), takes(lifecycle.DestroyUnmirrored)},
		"the root is gone, the leaf PV has no stamp, and the host has a PV for it (I2)":      {seen(leafBound, hostHolds, rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Stamp}},
		"the same, under another UID (I2)":                                                   {seen(leafBound, hostHolds, replaced, rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Secure}},
		"the root is gone, the leaf claim may be of the member's backup (I2)":                {seen(leafBound, memberRestored(0), rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Stamp}},
		"the root is gone, the leaf claim is younger than the member's restore":              {seen(leafBound, memberRestored(-time.Second), rootGone), takes(lifecycle.DestroyUnmirrored)},
		"the root is gone, the leaf PV was replaced: root_pv ends it, with a word":           {seen(leafBound, stampedVolume, retainedVolume, hostHolds, replaced, rootGone), says(v1alpha1.ReasonVolumeReplaced)},
		"the root was made anew, the leaf PV was replaced: it says so":                       {seen(leafBound, stampedVolume, retainedVolume, hostHolds, replaced, rootNewer), says(v1alpha1.ReasonVolumeReplaced)},
		"the root is gone, the leaf has lost its volume, and the host has a PV: root_pv":     {seen(leafBound, hostHolds, noLeafVolume, leafLost, rootGone), decision{}},
		"the root is gone, the volume was mirrored: the host PV decides (I2)":                {seen(leafBound, stampedVolume, rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Secure}},
		"the root is gone, the leaf's PV is not seen: no evidence (I2)":                      {seen(leafBound, noLeafVolume, rootGone), decision{}},
		"the root is gone, and the volume that the leaf was to use again":                    {seen(leafBound, rootGone, noLeafVolume, func(o *scene) { o.leaf.Status.Phase = corev1.ClaimPending }), takes(lifecycle.DeleteLost)},
		"the root is gone, the leaf's PV is another claim's (I4)":                            {seen(leafBound, rootGone, func(o *scene) { o.leafVolume.Spec.ClaimRef.UID = "other" }), decision{}},
		"the root is gone, the leaf's PV is nobody's yet":                                    {seen(leafBound, rootGone, func(o *scene) { o.leafVolume.Spec.ClaimRef = nil }), decision{}},
		"the root is gone, and its volume is another claim's: root_pv deletes the leaf":      {seen(leafBound, bound, handedOn, rootGone), decision{owner: lifecycle.RootPV, step: lifecycle.DeleteStale}},
		"the same, and the leaf ends: what comes next is for the other claim (I3)":           {seen(leafBound, bound, handedOn, leafDeleted, rootGone), decision{}},
		"the root was made anew, and its volume is another claim's":                          {seen(leafBound, bound, handedOn, rootNewer, boundTo("")), decision{owner: lifecycle.RootPV, step: lifecycle.DeleteStale}},
		"the same, and the leaf ends: nothing is done for the new one (I3)":                  {seen(leafBound, bound, handedOn, leafDeleted, rootNewer, boundTo("")), decision{}},
		"the same, and the other claim is placed: no leaf is made for the new one (I3)":      {seen(leafBound, bound, handedOn, otherPlaced, leafDeleted, rootNewer, boundTo("")), decision{}},
		"the same, and the leaf of the other claim is unbound: this one is not withdrawn":    {seen(leafBound, bound, handedOn, otherPlaced, otherPushed, leafDeleted, rootGone), decision{}},
		"the root was made anew, and has the volume: root_pv deletes the earlier leaf":       {seen(leafBound, bound, usedAgain), decision{owner: lifecycle.RootPV, step: lifecycle.DeleteStale}},
		"the same, and the earlier leaf ends":                                                {seen(leafBound, bound, usedAgain, leafDeleted), decision{}},
		"the same, and its leaf volume is gone: the earlier leaf goes (I6)":                  {seen(leafBound, bound, usedAgain, noLeafVolume), takes(lifecycle.DeleteLeft)},
		"its volume was freed for it while another claim that has it lives: reported (I6)":   {seen(leafBound, bound, heldByLiving), decision{reason: v1alpha1.ReasonVolumeMismatch, live: true}},
		"the root is gone, the leaf ends":                                                    {seen(pushed, leafDeleted, rootGone), decision{}},

		"the root is gone, and the leaf has lost its volume: nothing is left of it": {seen(leafBound, noLeafVolume, leafLost, rootGone), takes(lifecycle.DeleteLost)},
		"the root was made anew, and the leaf has lost its volume":                  {seen(leafBound, noLeafVolume, leafLost, rootNewer), takes(lifecycle.DeleteLost)},

		// The root was made anew and asks, by name, for the volume that it had.
		"comes back and asks for its volume: the place is recorded first (I3)":    {seen(comesBack, placedIn("")), takes(lifecycle.Place)},
		"the same, placed: the leaf claim is the new root's":                      {seen(comesBack), takes(lifecycle.AdoptClaim)},
		"the same, placed elsewhere (I3)":                                         {seen(comesBack, placedIn(elsewhereID)), says(v1alpha1.ReasonPlacedElsewhere)},
		"the same, another member has such a volume too (I8)":                     {seen(comesBack, func(o *scene) { o.rivals = []string{"cluster39"} }), says(v1alpha1.ReasonAmbiguousVolume)},
		"the same, in a namespace that was made anew (I8)":                        {seen(comesBack, newTenant), says(v1alpha1.ReasonAdoptionUnconfirmed)},
		"the same, in a namespace that was made anew, and an admin lets it":       {seen(comesBack, newTenant, allowed), takes(lifecycle.AdoptClaim)},
		"the same, and asks for more than there is":                               {seen(comesBack, grown("2Gi")), says(v1alpha1.ReasonVolumeMismatch)},
		"the same, its class is not ours (I4)":                                    {seen(comesBack, func(o *scene) { o.class.Provisioner = "other" }), decision{}},
		"the same, and the leaf claim ends":                                       {seen(comesBack, leafDeleted), decision{}},
		"the same, the volume's stamp is another root's than its claim's (I8)":    {seen(comesBack, func(o *scene) { o.asked.Annotations[v1alpha1.AnnotationRootUID] = "forged" }), decision{owner: lifecycle.LeafPV, step: lifecycle.Secure}},
		"the volume was let go of: an admin has to let it (I8)":                   {seen(comesBack, noLeaf), says(v1alpha1.ReasonAdoptionUnconfirmed)},
		"the volume was let go of, an admin lets it: the place is recorded":       {seen(comesBack, noLeaf, allowed, placedIn("")), takes(lifecycle.Place)},
		"the volume was let go of, an admin lets it, placed: leaf_pv goes on":     {seen(comesBack, noLeaf, allowed), decision{}},
		"comes back and asks for none: its name is freed, the data stay (I2)":     {seen(comesBack, func(o *scene) { o.root.Spec.VolumeName, o.asked = "", nil }), takes(lifecycle.DeleteRetained)},
		"the root is gone, its volume was in use, and nothing stands for it":      {seen(comesBack, rootGone, func(o *scene) { o.asked = nil }), takes(lifecycle.DeleteRetained)},
		"restored from before it was placed, its volume is here: it is placed":    {seen(leafBound, stampedVolume, selected(""), placedIn(""), hostRestored(time.Minute)), takes(lifecycle.Place)},
		"the same, the scheduler asks for another member":                         {seen(leafBound, stampedVolume, selected(elsewhereNode), placedIn(""), hostRestored(time.Minute)), takes(lifecycle.Place)},
		"the same, the restore is not confirmed: the member alone shows it (I8)":  {seen(leafBound, stampedVolume, selected(elsewhereNode), placedIn(""), hostRestored(time.Minute), unconfirmed), decision{reason: v1alpha1.ReasonAdoptionUnconfirmed, live: true}},
		"the same, made after the restore (I8)":                                   {seen(leafBound, stampedVolume, selected(""), placedIn(""), hostRestored(-time.Minute)), decision{reason: v1alpha1.ReasonAdoptionUnconfirmed, live: true}},
		"a volume where the claim was never placed, no restore (I8)":              {seen(leafBound, stampedVolume, selected(""), placedIn("")), decision{reason: v1alpha1.ReasonAdoptionUnconfirmed, live: true}},
		"the same, the scheduler asks for another member, no restore (I8)":        {seen(leafBound, stampedVolume, selected(elsewhereNode), placedIn("")), decision{reason: v1alpha1.ReasonAdoptionUnconfirmed, live: true}},
		"the same, and an admin allows it: placed":                                {seen(leafBound, stampedVolume, selected(""), placedIn(""), allowed), takes(lifecycle.Place)},
		"an unbound leaf where the claim was never placed: withdrawn (I8)":        {seen(pushed, selected(""), placedIn("")), takes(lifecycle.Withdraw)},
		"an unbound leaf, the host was restored: withdrawn, for nobody asks (I1)": {seen(pushed, selected(""), placedIn(""), hostRestored(time.Minute)), takes(lifecycle.Withdraw)},

		// Bound to a volume of this member.
		"bound and pushed: at rest (I5)":                                           {seen(leafBound, bound), decision{}},
		"bound, placed nowhere: the place is recorded (I3)":                        {seen(leafBound, bound, placedIn("")), takes(lifecycle.Place)},
		"bound, placed elsewhere: reported (I3)":                                   {seen(leafBound, bound, placedIn(elsewhereID)), says(v1alpha1.ReasonPlacedElsewhere)},
		"bound, and the member lost the volume: nothing is made (I2)":              {seen(bound, noLeafVolume), says(v1alpha1.ReasonVolumeLost)},
		"bound, and the member lost volume and class: nothing is made (I2)":        {seen(bound, noClass, noLeafVolume), says(v1alpha1.ReasonVolumeLost)},
		"bound, and the volume is being deleted there":                             {seen(leafBound, bound, leafTerminating), says(v1alpha1.ReasonVolumeTerminating)},
		"the same, and the leaf claim is gone: none is made":                       {seen(bound, leafTerminating), says(v1alpha1.ReasonVolumeTerminating)},
		"not bound yet, and the volume is being deleted in the member":             {seen(leafBound, leafTerminating), says(v1alpha1.ReasonVolumeTerminating)},
		"the same, and the scheduler has chosen another node":                      {seen(leafBound, leafTerminating, selected("other")), says(v1alpha1.ReasonVolumeTerminating)},
		"not bound there either, and the scheduler has chosen another node":        {seen(pushed, leafTerminating, selected("other")), takes(lifecycle.Withdraw)},
		"not bound yet, and the host PV is being deleted":                          {seen(leafBound, mirrorTerminating), says(v1alpha1.ReasonVolumeTerminating)},
		"the same, and the leaf claim is gone":                                     {seen(mirrorTerminating), says(v1alpha1.ReasonVolumeTerminating)},
		"bound, and the volume there was replaced by another (I2)":                 {seen(bound, replaced), says(v1alpha1.ReasonVolumeReplaced)},
		"bound, and the member lost the claim: made again for that volume":         {seen(bound), again},
		"bound, the member lost the claim, the class is gone from the host":        {seen(bound, noClass), again},
		"bound, the member lost the claim, its class there is gone":                {seen(bound, func(o *scene) { o.memberClasses = nil }), again},
		"bound, the member lost the claim and its namespace is another's (I4)":     {seen(bound, func(o *scene) { o.namespace.Labels = nil }), says(v1alpha1.ReasonNamespaceConflict)},
		"bound, the member lost the claim, which it admits no more":                {seen(bound, wantsTeam), says(v1alpha1.ReasonNamespaceNotAdmitted)},
		"bound and pushed, and admitted no more: it stays":                         {seen(leafBound, bound, wantsTeam), decision{}},
		"bound, the member lost the claim, its namespace is being made":            {seen(bound, func(o *scene) { o.namespace = nil }), decision{}},
		"bound, the root is being deleted: nothing is made":                        {seen(bound, rootDeleted), decision{}},
		"bound, and the leaf is unbound and asks for any volume: withdrawn (I3)":   {seen(pushed, bound), takes(lifecycle.Withdraw)},
		"bound, and the leaf is not bound yet, as before a restore: it waits (I2)": {seen(pushed, bound, pointsBack("leaf-uid")), decision{}},
		"bound, and the leaf is bound to another volume: reported (I3)":            {seen(leafBound, bound, func(o *scene) { o.leaf.Spec.VolumeName = "pv-2" }), says(v1alpha1.ReasonVolumeMismatch)},
		"bound, and the leaf is Lost":                                              {seen(leafBound, bound, func(o *scene) { o.leaf.Status.Phase = corev1.ClaimLost }), says(v1alpha1.ReasonVolumeLost)},
		"bound, and the leaf of an earlier root is still here":                     {seen(leafBound, stampedVolume, bound, rootNewer), decision{}},
		"the user asks for more":                                                   {seen(leafBound, bound, grown("2Gi")), decision{step: lifecycle.Grow, to: "2Gi"}},
		"the user asks for more before the leaf is bound":                          {seen(leafBound, bound, grown("2Gi"), pointsBack("leaf-uid"), nudged), decision{}},
		"the user asks for other volume attributes":                                {seen(leafBound, bound, func(o *scene) { o.root.Spec.VolumeAttributesClassName = ptr.To("fast") }), takes(lifecycle.Modify)},
		"the user asks for volume attributes, and the leaf is not bound yet":       {seen(leafBound, bound, pointsBack("leaf-uid"), nudged, attributes("gold", "", "", ""), func(o *scene) { o.leaf.Status.Phase = corev1.ClaimPending }), decision{}},
		"the leaf has the member's class for the user's":                           {seen(leafBound, bound, attributes("gold", "m-gold", "gold", "m-gold")), takes(lifecycle.None)},
		"another class of the user's is the same one there":                        {seen(leafBound, bound, attributes("silver", "m-gold", "gold", "m-gold")), takes(lifecycle.Modify)},
		"somebody in the member changed the class":                                 {seen(leafBound, bound, attributes("gold", "m-lead", "gold", "m-gold")), takes(lifecycle.Modify)},
		"the user takes back a class that was never applied":                       {seen(leafBound, bound, attributes("", "m-gold", "gold", "")), takes(lifecycle.Modify)},
		"the user names no class, and the member applied one":                      {seen(leafBound, bound, attributes("", "m-gold", "", "m-gold")), says(v1alpha1.ReasonModifyUnsupported)},

		// Bound elsewhere.
		"bound elsewhere, nothing here":                              {seen(boundTo("pv-9")), decision{}},
		"bound elsewhere, placed here, nothing here: let go of (I3)": {seen(boundTo("pv-9"), away), takes(lifecycle.Unplace)},
		"bound elsewhere, placed there, nothing here":                {seen(boundTo("pv-9"), away, placedIn(elsewhereID)), decision{}},
		"bound elsewhere, the leaf here is unbound: withdrawn (I3)":  {seen(pushed, boundTo("pv-9")), takes(lifecycle.Withdraw)},
		"bound elsewhere, the leaf here is bound: a surplus (I3)":    {seen(leafBound, boundTo("pv-9"), away), says(v1alpha1.ReasonSurplusVolume)},
		"bound to a volume that is not seen: not known which is its": {seen(leafBound, boundTo("pv-9")), says(v1alpha1.ReasonVolumeMismatch)},
		"about to be bound to its mirror":                            {seen(leafBound, boundTo("pv-1")), decision{}},
		"about to be bound to its mirror, whose name was taken (I3)": {seen(leafBound, boundTo(hostpv.Name("pv-1", here.ClusterID, true))), decision{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decided(tc.observed), cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// The user is told what is there to choose from, and where to change it.
func TestMissingClassListsClasses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*scene)
		want   []string
	}{
		"by the same name": {func(o *scene) { o.memberClasses = []string{"slow", "fast"} },
			[]string{`no StorageClass "disk"`, "the same name", "it has: fast, slow.", `ClusterRegistration "cluster38"`}},
		"by the registration": {func(o *scene) { o.rules = mapping("gp9") },
			[]string{`no StorageClass "gp9"`, `storage.classes of ClusterRegistration "cluster38"`, "it has: disk, slow."}},
		"by the class's parameter": {func(o *scene) { o.class.Parameters = map[string]string{v1alpha1.ParameterMemberClass: "gp8"} },
			[]string{`no StorageClass "gp8"`, v1alpha1.ParameterMemberClass}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planned(seen(tc.change))
			if plan.Step != lifecycle.Unselect {
				t.Fatalf("plan is %+v, want Unselect", plan)
			}
			for _, want := range tc.want {
				if !strings.Contains(plan.Report.Message, want) {
					t.Errorf("message %q does not say %q", plan.Report.Message, want)
				}
			}
		})
	}
}

func TestLeafClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		observed           observe.Claim
		volume, class, gib string
	}{
		"new: any volume of the member's class":                              {seen(func(o *scene) { o.rules = mapping("slow") }), "", "slow", "1Gi"},
		"again: that volume, of its own class":                               {seen(bound), "pv-1", "gp3", "1Gi"},
		"again, while the root has grown: at its present size, to grow then": {seen(bound, grown("5Gi")), "pv-1", "gp3", "1Gi"},
		"again, of a volume larger than asked for":                           {seen(bound, func(o *scene) { o.leafVolume.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi") }), "pv-1", "gp3", "1Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			root := tc.observed.Root.DeepCopy()
			if plan := planned(tc.observed); plan.Step != lifecycle.CreateClaim {
				t.Fatalf("plan is %+v, want CreateClaim", plan)
			}
			leaf, refusal := tc.observed.Observed.LeafClaim()
			if refusal != nil {
				t.Fatal(refusal)
			}
			if got := leaf.Spec.VolumeName; got != tc.volume {
				t.Errorf("volumeName is %q, want %q", got, tc.volume)
			}
			if got := ptr.Deref(leaf.Spec.StorageClassName, ""); got != tc.class {
				t.Errorf("class is %q, want %q", got, tc.class)
			}
			if got := leaf.Spec.Resources.Requests.Storage().String(); got != tc.gib {
				t.Errorf("request is %s, want %s", got, tc.gib)
			}
			if _, has := leaf.Annotations[route.AnnSelectedNode]; has {
				t.Error("the host's selected-node leaked into the member")
			}
			if diff := cmp.Diff(root, tc.observed.Root); diff != "" {
				t.Errorf("deciding changed the root:\n%s", diff)
			}
		})
	}
}

// Two members that both kept the Placed condition would write for ever (I5):
// whatever the annotations, one at most reports when there is a problem.
func TestOneMemberReports(t *testing.T) {
	other := mirror.Member{Registration: "cluster39", ClusterID: elsewhereID, NodeName: elsewhereNode, HostID: here.HostID}
	for name, tc := range map[string]struct {
		change       []func(*scene)
		here, others bool
	}{
		"asked for here":                                        {[]func(*scene){placedIn("")}, true, false},
		"asked for here, placed there: it waits":                {[]func(*scene){placedIn(elsewhereID)}, true, false},
		"placed here, asked for there":                          {[]func(*scene){selected(elsewhereNode)}, false, true},
		"placed here, asked for nowhere":                        {[]func(*scene){selected("")}, true, false},
		"asked for on a node of the host's own":                 {[]func(*scene){selected("worker-1")}, false, false},
		"bound, placed here, selected there":                    {[]func(*scene){boundTo("pv-1"), selected(elsewhereNode)}, true, false},
		"bound, placed there, selected here":                    {[]func(*scene){boundTo("pv-1"), placedIn(elsewhereID)}, false, true},
		"no member has it: each may take back what it reported": {[]func(*scene){selected(""), placedIn("")}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(tc.change...)
			for _, m := range []struct {
				mirror.Member
				want bool
			}{{here, tc.here}, {other, tc.others}} {
				if got := o.Reports(m.Member); got != m.want {
					t.Errorf("member %s reports: %v, want %v", m.Registration, got, m.want)
				}
			}
		})
	}
	if (&observe.Claim{}).Reports(here) {
		t.Error("a member reports on a claim that is gone")
	}
}

// What a member says that it has is bounded and plain, however many and whatever
// its classes are called.
func TestClassNotFoundNamesWhatIsThere(t *testing.T) {
	said := func(classes ...string) string {
		plan := planned(seen(func(o *scene) { o.memberClasses = classes }))
		if plan.Step != lifecycle.Unselect {
			t.Fatalf("plan is %+v", plan)
		}
		return plan.Report.Message
	}
	for _, part := range []string{here.Registration, `no StorageClass "disk" (by the same name)`, "it has: fast, slow."} {
		if message := said("slow", "fast"); !strings.Contains(message, part) {
			t.Errorf("%q lacks %q", message, part)
		}
	}
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("\x1b[2Jclass-%d", i)
	}
	if message := said(many...); len(message) > 1024 || strings.Contains(message, "\x1b") {
		t.Errorf("%d bytes: %.200q", len(message), message)
	}
}

// Each read shows the cache as it is then: what is decided on is what was read last.
func TestObserveReadsTheSameTwice(t *testing.T) {
	for name, tc := range map[string]struct {
		scene scene
		late  func(host, leaf *store, s scene)
		want  decision
	}{
		"the leaf claim comes between two reads": {sceneOf(leafBound, bound, grown("2Gi")), func(_, leaf *store, s scene) { leaf.late[s.leaf] = 1 }, decision{step: lifecycle.Grow, to: "2Gi"}},
		"the root comes between two reads":       {sceneOf(leafBound, bound, grown("2Gi")), func(host, _ *store, s scene) { host.late[s.root] = 1 }, decision{step: lifecycle.Grow, to: "2Gi"}},
		"a PV of the name that is asked for comes between two reads": {sceneOf(comesBack, func(o *scene) {
			o.hosts = []corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}}}
		}), func(host, _ *store, s scene) { host.late[&s.hosts[0]] = 1 }, decision{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := tc.scene.reconciler()
			host, isHost := r.Host.(*store)
			leaf, isLeaf := r.Cache.(*store)
			if !isHost || !isLeaf {
				t.Fatal("not the caches of a scene")
			}
			host.add(tc.scene.class)
			tc.late(host, leaf, tc.scene)
			o, err := r.observer().OfClaim(t.Context(), client.ObjectKeyFromObject(tc.scene.root))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, decided(o), cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// A claim that has the volume by now, and another name, is not taken for the root.
func TestObserveKeepsTheRoot(t *testing.T) {
	if o := seen(leafBound, bound, handedOn, leafDeleted, rootGone); o.Root != nil || o.Leaf.UID != "leaf-uid" {
		t.Errorf("root is %v", o.Root)
	}
	if o := seen(leafBound, bound, handedOn, otherPushed, leafDeleted, rootNewer); o.Root.UID != "newer" || o.Leaf.UID != "leaf-uid" {
		t.Errorf("root is %s, leaf claim %s", o.Root.UID, o.Leaf.UID)
	}
}

// attributes sets the VolumeAttributesClasses of the root, of the leaf, the host's name that the
// latter is noted for, and the one that the member applied.
func attributes(root, leaf, noted, applied string) func(*scene) {
	return func(o *scene) {
		if noted != "" {
			o.leaf = pvc.WithAttributesClass(o.leaf, "m-gold", noted)
		}
		o.root.Spec.VolumeAttributesClassName, o.leaf.Spec.VolumeAttributesClassName = orNil(root), orNil(leaf)
		o.leaf.Status.CurrentVolumeAttributesClassName = orNil(applied)
	}
}

func orNil(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

// adopting are the rules of a registration by which an admin lets a claim have a volume.
func adopting(volume string) placement.Rules {
	return placement.RulesOf(&v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationAdopt: volume}}})
}

// wantsTeam: the registration admits only namespaces with a label.
func wantsTeam(o *scene) {
	o.rules = placement.RulesOf(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{
		Namespaces: v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"team": "a"}}}})
}

func ofTeam(o *scene) { o.labels = map[string]string{"team": "a"} }

// mapping are the rules of a registration that maps the class.
func mapping(to string) placement.Rules {
	return placement.RulesOf(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{
		Storage: v1alpha1.StorageSpec{Classes: []v1alpha1.ClassMapping{{Host: "disk", Member: to}}}}})
}

// copying: the claim is to be created from claim golden, which is here and ready.
func copying(change ...func(*volume.From)) func(*scene) {
	return func(o *scene) {
		o.root.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
		o.root.Annotations[v1alpha1.AnnotationSource] = here.ClusterID + "/golden-uid"
		golden := &corev1.PersistentVolumeClaim{}
		golden.Spec.VolumeName, golden.Status.Phase = "pv-golden", corev1.ClaimBound
		disk := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-golden", UID: "pv-golden-uid"}}
		disk.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com"}
		o.from = &volume.From{
			At:    placement.Location{Record: datasource.Record{ClusterID: here.ClusterID, UID: "golden-uid"}, LeafVolume: "pv-golden", LeafUID: "pv-golden-uid"},
			Class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "disk.example.com"},
			Claim: golden, Origin: mirror.Origin{UID: "golden-uid"}, Volume: disk,
		}
		o.from.Of, _ = datasource.Of(o.root)
		for _, c := range change {
			c(o.from)
		}
	}
}

// restoring: the claim is to be restored from snapshot golden, which is here and ready.
func restoring(change ...func(*volume.From)) func(*scene) {
	return func(o *scene) {
		copying()(o)
		o.root.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(datasource.SnapshotGroup), Kind: datasource.SnapshotKind, Name: "golden"}
		o.from.Of, _ = datasource.Of(o.root)
		o.from.Claim, o.from.Volume = nil, nil
		o.from.At.LeafVolume, o.from.At.LeafUID, o.from.At.LeafSnapshot, o.from.At.LeafContent = "", "", "leaf-snap", "leaf-content"
		o.from.At.LeafHandle = "s-1"
		o.from.Snapshot = &snapshotv1.VolumeSnapshot{
			ObjectMeta: metav1.ObjectMeta{Name: "golden", UID: "leaf-snap"},
			Status:     &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr.To("snapcontent-leaf-snap")},
		}
		o.from.Content = &snapshotv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-leaf-snap", UID: "leaf-content"},
			Spec: snapshotv1.VolumeSnapshotContentSpec{
				Driver: "disk.example.com", VolumeSnapshotRef: corev1.ObjectReference{UID: "leaf-snap"},
				Source: snapshotv1.VolumeSnapshotContentSource{VolumeHandle: ptr.To("disk-1")},
			},
			Status: &snapshotv1.VolumeSnapshotContentStatus{ReadyToUse: ptr.To(true), SnapshotHandle: ptr.To("s-1")},
		}
		for _, c := range change {
			c(o.from)
		}
	}
}

// unread: the member's snapshots cannot be read, so nothing of them is known.
func unread(f *volume.From) {
	f.Snapshot, f.Content, f.Origin = nil, nil, mirror.Origin{}
	f.Unread = &mirror.Refusal{Reason: v1alpha1.ReasonSnapshotsUnsupported, Message: "not served"}
}

func notReady(f *volume.From) {
	f.At = placement.Location{Refusal: &mirror.Refusal{Reason: v1alpha1.ReasonSourceNotReady, Message: "not yet"}}
}

// asksToo: the leaf claim is to be created from the same.
func asksToo(o *scene) {
	o.leaf.Spec.DataSource = o.root.Spec.DataSource
	metav1.SetMetaDataAnnotation(&o.leaf.ObjectMeta, v1alpha1.AnnotationSource, "golden-uid")
}
