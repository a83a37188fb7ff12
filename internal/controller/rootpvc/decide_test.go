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

// seen returns the observation of a claim for which the scheduler has just selected this member's
// node. The claim is placed here, but the member has no objects for it yet.
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

// stampedVolume gives the leaf PV the stamp of its leaf claim and the record of its policy.
func stampedVolume(o *scene) {
	o.origin.StampLeaf(o.leafVolume)
	o.leafVolume.Annotations[v1alpha1.AnnotationReclaimPolicy] = string(o.leafVolume.Spec.PersistentVolumeReclaimPolicy)
}

func retainedVolume(o *scene) {
	o.leafVolume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// hostHolds adds a host PV for the leaf claim's volume.
func hostHolds(o *scene) { o.hosts = []corev1.PersistentVolume{*mirrorFor(o)} }

func mirrorFor(o *scene) *corev1.PersistentVolume {
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}
	return hostpv.TranslateVolume(o.leafVolume, root, corev1.PersistentVolumeReclaimRetain, here)
}

// replaced gives the leaf PV a UID other than the one that the host PV records.
func replaced(o *scene) {
	o.leafVolume = o.leafVolume.DeepCopy()
	o.leafVolume.UID = "copied-uid"
}

// memberRestored sets the leaf claim's age, and records that the member was just restored.
func memberRestored(age time.Duration) func(*scene) {
	return func(o *scene) {
		o.restores.Member, o.leaf.CreationTimestamp = now.Time, metav1.NewTime(now.Add(-age))
	}
}

// hostRestored sets the leaf claim's age, and records that the host was just restored.
func hostRestored(age time.Duration) func(*scene) {
	return func(o *scene) {
		o.restores.Host, o.leaf.CreationTimestamp = now.Time, metav1.NewTime(now.Add(-age))
	}
}

func unconfirmed(o *scene) { o.restores.HostUnconfirmed = true }

// pointsBack makes the leaf claim pending, and sets its volume's claimRef to the given UID.
func pointsBack(uid types.UID) func(*scene) {
	return func(o *scene) {
		o.leaf.Status.Phase, o.leafVolume.Status.Phase = corev1.ClaimPending, corev1.VolumeReleased
		o.leafVolume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: uid}
	}
}

// away means that the volume to which the root is bound is not in this member.
func away(o *scene) { o.boundAway = true }

// pushed adds an unbound leaf claim.
func pushed(o *scene) {
	leaf, err := pvc.TranslateClaim(o.root, ptr.To("disk"), here)
	if err != nil {
		panic(err)
	}
	leaf.UID, leaf.ResourceVersion = "leaf-uid", "7"
	leaf.Status.Phase = corev1.ClaimPending
	o.leaf, o.origin = leaf, mirror.OriginForRoot(here.HostID, o.root)
}

// leafBound adds a leaf claim that is bound to an unstamped PV.
func leafBound(o *scene) {
	pushed(o)
	o.leaf.Spec.VolumeName, o.leaf.Status.Phase = "pv-1", corev1.ClaimBound
	leafMade(o)
	o.leafVolume.Status.Phase = corev1.VolumeBound
}

// leafMade adds a PV for the leaf claim.
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

// bound binds the root to the mirror of pv-1, which the member has. There is no leaf claim unless
// pushed or leafBound was applied before.
func bound(o *scene) {
	if o.leafVolume == nil {
		o.leafVolume = leafPV()
		o.leafVolume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "earlier-leaf"}
		o.leafVolume.Status.Phase = corev1.VolumeReleased
	}
	o.origin = mirror.OriginForRoot(here.HostID, o.root)
	stampedVolume(o)
	retainedVolume(o)
	pv := hostpv.TranslateVolume(o.leafVolume, o.root, corev1.PersistentVolumeReclaimDelete, here)
	pv.Status.Phase = corev1.VolumeBound
	o.hosts = []corev1.PersistentVolume{*pv}
	boundTo("pv-1")(o)
}

// nudged means that the member's PV controller was made to reconcile the leaf claim again.
func nudged(o *scene) {
	o.leaf.Annotations[v1alpha1.AnnotationVolumeUID] = string(o.leafVolume.UID)
}

// hostReleased means that the host's PV controller has released the host PV.
func hostReleased(o *scene) { o.hosts[0].Status.Phase = corev1.VolumeReleased }

// handedOn means that an admin freed the host PV, and the host bound it to a claim with another
// name, which is not placed yet.
func handedOn(o *scene) {
	o.other = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "other-uid"}}
	o.other.Spec.VolumeName, o.other.Status.Phase = o.hosts[0].Name, corev1.ClaimBound
	o.hosts[0].Spec.ClaimRef.Name, o.hosts[0].Spec.ClaimRef.UID = o.other.Name, o.other.UID
}

// usedAgain means that an admin freed the host PV, and the host bound it to the root.
func usedAgain(o *scene) {
	o.root.UID = "newer"
	o.hosts[0].Spec.ClaimRef.UID = o.root.UID
}

// heldByLiving means that an admin freed a volume for the root although another claim still has it.
func heldByLiving(o *scene) {
	o.other = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "other-uid"}}
	otherPushed(o)
	o.otherLeaf.Spec.VolumeName, o.leafVolume.Spec.ClaimRef.UID, o.leafVolume.Spec.ClaimRef.Name = "pv-1", o.otherLeaf.UID, o.otherLeaf.Name
	mirror.OriginForRoot(here.HostID, o.other).StampLeaf(o.leafVolume)
	retainedVolume(o)
	o.leaf = nil
}

// otherPushed adds a leaf claim without a volume for the other claim.
func otherPushed(o *scene) {
	o.otherLeaf = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "other-leaf"}}
	mirror.OriginForRoot(here.HostID, o.other).StampLeaf(o.otherLeaf)
}

// otherPlaced places the other claim here.
func otherPlaced(o *scene) {
	o.other.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}
}

// comesBack means that the claim was re-created in the host, and requests the volume of the earlier
// claim's leaf claim.
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

func askedReleased(o *scene) { o.asked.Status.Phase = corev1.VolumeReleased }

// leafTerminating means that someone deletes the leaf claim's volume in the member.
func leafTerminating(o *scene) {
	if o.leafVolume == nil {
		leafMade(o)
	}
	o.leafVolume.DeletionTimestamp = &now
}

// mirrorTerminating means that someone deletes the host PV before it is bound.
func mirrorTerminating(o *scene) {
	o.mirror = hostpv.TranslateVolume(leafPV(), o.root, corev1.PersistentVolumeReclaimDelete, here)
	o.mirror.DeletionTimestamp = &now
}

// inZone restricts the class to a zone.
func inZone(zone string) func(*scene) {
	return func(o *scene) {
		o.class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: corev1.LabelTopologyZone, Values: []string{zone}},
		}}}
	}
}

// nodeIn adds the member's node, with the given zone, if any.
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

// boundTo binds the root to the volume with that name.
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
	o.attempt.ProvisioningProblem = &mirror.Refusal{Reason: v1alpha1.ReasonProvisioningFailed, Message: "member \"cluster38\" cannot provision the volume: no"}
}

var unschedulable = &mirror.Refusal{Reason: v1alpha1.ReasonPodUnschedulable, Message: `member "cluster38" has no node for Pod "web": no`}

func usedBy(pods ...volume.Consumer) func(*scene) {
	return func(o *scene) { o.attempt.Consumers = pods }
}

func steeredTo(node string) func(*scene) {
	return func(o *scene) { set(o.root, v1alpha1.AnnotationSteeredTo, node) }
}

// A claim that cannot be placed elsewhere reports why.
func TestFailureOfAWaitingClaim(t *testing.T) {
	o := seen(pushed, fails, usedBy(volume.Consumer{Name: "api"}, volume.Consumer{Name: "web", OtherBoundClaim: "cache"}))
	said := volume.ReportProvisioningFailure(o.Observed).Message
	for _, part := range []string{"cannot provision the volume: no", `Pod "web"`, `claim "cache"`, "Xylem does not try other members"} {
		if !strings.Contains(said, part) {
			t.Errorf("%q does not contain %q", said, part)
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
		"neither the root nor the leaf exists": {observe.Claim{}, decision{}},

		// Never bound.
		"this node is selected: placed before the first write in the member (I3)": {seen(placedIn("")), takes(lifecycle.Place)},
		"placed here: the leaf claim is created":                                  {seen(), leaf},
		"the leaf claim exists: the member's controllers continue":                {seen(pushed), decision{}},
		"placed in another member: the claim waits, and nothing is created (I3)":  {seen(placedIn(elsewhereID)), says(v1alpha1.ReasonPlacedElsewhere)},
		"placed in another member, with a leaf here: nothing is created (I3)":     {seen(pushed, placedIn(elsewhereID)), says(v1alpha1.ReasonPlacedElsewhere)},
		"no node is selected":                                     {seen(selected(""), placedIn("")), decision{}},
		"another node is selected":                                {seen(selected(elsewhereNode), placedIn("")), decision{}},
		"another node is selected, and the claim is placed there": {seen(selected(elsewhereNode), placedIn(elsewhereID)), decision{}},
		"the root has a leaf but no placement, after a restore: placed again (I6)": {
			seen(pushed, placedIn(""), hostRestored(time.Minute)), takes(lifecycle.Place)},
		"the root has a leaf but no placement, and the restore is not confirmed":                                           {seen(pushed, placedIn(""), hostRestored(time.Minute), unconfirmed), takes(lifecycle.Place)},
		"the root has no placement, and its leaf is younger than the restore: withdrawn (I8)":                              {seen(pushed, placedIn(""), hostRestored(-time.Minute)), takes(lifecycle.Withdraw)},
		"the root has a leaf but no placement, without a restore: withdrawn (I8)":                                          {seen(pushed, placedIn("")), takes(lifecycle.Withdraw)},
		"the root has a bound leaf but no placement, without a restore: reported (I8)":                                     {seen(leafBound, placedIn("")), decision{reason: v1alpha1.ReasonAdoptionUnconfirmed, live: true}},
		"the root has a bound leaf but no placement, and an admin allows it":                                               {seen(leafBound, placedIn(""), allowed), takes(lifecycle.Place)},
		"the root has a bound leaf but no placement, after a restore":                                                      {seen(leafBound, placedIn(""), hostRestored(time.Minute)), takes(lifecycle.Place)},
		"the root has a bound leaf but no placement, the restore is not confirmed, and the scheduler selected this member": {seen(leafBound, placedIn(""), hostRestored(time.Minute), unconfirmed), takes(lifecycle.Place)},
		"the class belongs to another provisioner":                                                                         {seen(func(o *scene) { o.class.Provisioner = "disk.example.com" }), decision{}},
		"the class was deleted in the host":                                                                                {seen(noClass), decision{}},
		"the class binds immediately: host_claim reports it":                                                               {seen(func(o *scene) { o.class.VolumeBindingMode = nil }), decision{}},
		"the class is in promise mode": {seen(func(o *scene) {
			o.class.Parameters = map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise}
		}), decision{}},
		"the class has unknown parameters": {seen(func(o *scene) { o.class.Parameters = map[string]string{v1alpha1.ParameterProvisioning: "magic"} }), decision{}},
		"the class excludes the member: the selection is removed": {seen(func(o *scene) {
			o.class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: v1alpha1.LabelClusterID, Values: []string{elsewhereID}},
			}}}
		}), decision{step: lifecycle.Unselect, reason: v1alpha1.ReasonClassKeepsOff}},
		"the class excludes the zone of the node, which a tenant selected (I8)":            {seen(inZone("eu-1"), nodeIn("eu-2")), decision{step: lifecycle.Unselect, reason: v1alpha1.ReasonClassKeepsOff}},
		"the class requires a zone, and the node has none":                                 {seen(inZone("eu-1"), nodeIn("")), decision{step: lifecycle.Unselect, reason: v1alpha1.ReasonClassKeepsOff}},
		"the class requires the node's zone":                                               {seen(inZone("eu-1"), nodeIn("eu-1")), leaf},
		"the class excludes the zone of the node, and the root already has a volume there": {seen(bound, inZone("eu-1"), nodeIn("eu-2")), again},
		"the member lacks the class: the selection is removed":                             {seen(func(o *scene) { o.memberClasses = []string{"slow"} }), decision{step: lifecycle.Unselect, reason: v1alpha1.ReasonClassNotFound}},
		"the registration maps the class":                                                  {seen(func(o *scene) { o.rules = mapping("slow") }), leaf},
		"the namespace is foreign: nothing is written, not even placed-in (I4)": {
			seen(placedIn(""), func(o *scene) { o.namespace.Labels = nil }), says(v1alpha1.ReasonNamespaceConflict)},
		"the namespace does not exist yet": {seen(func(o *scene) { o.namespace = nil }), decision{}},
		"the namespace lacks the labels that the member requires: nothing is written, not even placed-in": {
			seen(placedIn(""), wantsTeam), says(v1alpha1.ReasonNamespaceNotAdmitted)},
		"the namespace has the labels that the member requires":                                  {seen(wantsTeam, ofTeam), leaf},
		"the namespace is not in the cache yet":                                                  {seen(wantsTeam, func(o *scene) { o.unlisted = true }), decision{}},
		"the namespace lost the required labels after the claim was pushed":                      {seen(pushed, wantsTeam), decision{}},
		"the claim clones another claim":                                                         {seen(copying()), leaf},
		"the location of the claim's source is unknown":                                          {seen(copying(), func(o *scene) { o.from = nil }), decision{}},
		"the claim waits for its source, and is not placed: host_claim reports it":               {seen(copying(notReady), placedIn("")), decision{}},
		"the claim waits for its source, and is placed":                                          {seen(copying(notReady)), says(v1alpha1.ReasonSourceNotReady)},
		"the claim's source is in another member":                                                {seen(copying(func(f *volume.SourceInMember) { f.At.ClusterID = elsewhereID })), says(v1alpha1.ReasonSourceElsewhere)},
		"the claim does not record its source":                                                   {seen(copying(), func(o *scene) { delete(o.root.Annotations, v1alpha1.AnnotationSource) }, placedIn("")), decision{}},
		"the claim's source was re-created":                                                      {seen(copying(func(f *volume.SourceInMember) { f.At.UID = "newer" }), placedIn("")), decision{}},
		"the member has no counterpart of the source":                                            {seen(copying(func(f *volume.SourceInMember) { f.Claim = nil })), says(v1alpha1.ReasonSourceNotReady)},
		"the source's counterpart belongs to another root":                                       {seen(copying(func(f *volume.SourceInMember) { f.Origin.UID = "other" })), says(v1alpha1.ReasonSourceNotReady)},
		"the source's counterpart is being deleted":                                              {seen(copying(func(f *volume.SourceInMember) { f.Claim.DeletionTimestamp = &metav1.Time{} })), says(v1alpha1.ReasonSourceNotReady)},
		"the source's counterpart has another volume":                                            {seen(copying(func(f *volume.SourceInMember) { f.Volume.UID = "other" })), says(v1alpha1.ReasonSourceNotReady)},
		"the source and the class belong to different drivers":                                   {seen(copying(func(f *volume.SourceInMember) { f.Class.Provisioner = "other.example.com" })), says(v1alpha1.ReasonSourceMismatch)},
		"the member lacks the class: the selection stays, because the controller source made it": {seen(copying(), func(o *scene) { o.memberClasses = []string{"slow"} }), says(v1alpha1.ReasonClassNotFound)},
		"the copy is being created":                                                              {seen(pushed, copying(), asksToo), decision{}},
		"the provisioner fails to create the copy: no other member is tried":                     {seen(pushed, copying(), asksToo, fails), says(v1alpha1.ReasonProvisioningFailed)},
		"the claim's source was deleted in the member: withdrawn":                                {seen(pushed, copying(func(f *volume.SourceInMember) { f.Claim = nil }), asksToo), takes(lifecycle.Withdraw)},
		"another claim now has the name of the source in the member: withdrawn":                  {seen(pushed, copying(func(f *volume.SourceInMember) { f.Origin.UID = "other" }), asksToo), takes(lifecycle.Withdraw)},
		"the leaf claim has no data source: its volume is not used":                              {seen(leafBound, copying()), says(v1alpha1.ReasonSourceMismatch)},

		"the claim is restored from a snapshot":                                                             {seen(restoring()), leaf},
		"the snapshot is in another member":                                                                 {seen(restoring(func(f *volume.SourceInMember) { f.At.ClusterID = elsewhereID })), says(v1alpha1.ReasonSourceElsewhere)},
		"the member's snapshots cannot be read":                                                             {seen(restoring(unread)), says(v1alpha1.ReasonSourceNotReady)},
		"the member has no counterpart of the snapshot":                                                     {seen(restoring(func(f *volume.SourceInMember) { f.Snapshot = nil })), says(v1alpha1.ReasonSourceNotReady)},
		"the snapshot's counterpart belongs to another snapshot":                                            {seen(restoring(func(f *volume.SourceInMember) { f.Origin.UID = "other" })), says(v1alpha1.ReasonSourceNotReady)},
		"the snapshot's counterpart was replaced":                                                           {seen(restoring(func(f *volume.SourceInMember) { f.Snapshot.UID = "other" })), says(v1alpha1.ReasonSourceNotReady)},
		"the content of the snapshot's counterpart has lost its stamp":                                      {seen(restoring(func(f *volume.SourceInMember) { f.Content.Annotations = nil })), says(v1alpha1.ReasonSourceNotReady)},
		"the snapshot's counterpart is being deleted":                                                       {seen(restoring(func(f *volume.SourceInMember) { f.Snapshot.DeletionTimestamp = &metav1.Time{} })), says(v1alpha1.ReasonSourceNotReady)},
		"the snapshot's counterpart has no content":                                                         {seen(restoring(func(f *volume.SourceInMember) { f.Content = nil })), says(v1alpha1.ReasonSourceNotReady)},
		"the snapshot's counterpart has another content":                                                    {seen(restoring(func(f *volume.SourceInMember) { f.Content.UID = "other" })), says(v1alpha1.ReasonSourceNotReady)},
		"the snapshot's counterpart is not ready":                                                           {seen(restoring(func(f *volume.SourceInMember) { f.Content.Status.ReadyToUse = nil })), says(v1alpha1.ReasonSourceNotReady)},
		"the snapshot and the class belong to different drivers":                                            {seen(restoring(func(f *volume.SourceInMember) { f.Content.Spec.Driver = "other.example.com" })), says(v1alpha1.ReasonSourceMismatch)},
		"the restored volume is being created":                                                              {seen(pushed, restoring(), asksToo), decision{}},
		"the restored volume is being created, and the member's snapshots cannot be read":                   {seen(pushed, restoring(unread), asksToo), decision{}},
		"the snapshot was deleted in the member: withdrawn":                                                 {seen(pushed, restoring(func(f *volume.SourceInMember) { f.Snapshot = nil }), asksToo), takes(lifecycle.Withdraw)},
		"another snapshot now has the snapshot's name in the member: withdrawn":                             {seen(pushed, restoring(func(f *volume.SourceInMember) { f.Origin.UID = "other" }), asksToo), takes(lifecycle.Withdraw)},
		"the leaf claim was not created from the snapshot: its volume is not used":                          {seen(leafBound, restoring()), says(v1alpha1.ReasonSourceMismatch)},
		"the claim's Pod has another claim whose source is in another member":                               {seen(placedIn(""), usedBy(volume.Consumer{OtherApartClaim: "copy", AboutToBindHere: true})), decision{}},
		"one of the claim's Pods has a claim whose source is in another member, and the other Pod has none": {seen(placedIn(""), usedBy(volume.Consumer{OtherApartClaim: "copy"}, volume.Consumer{AboutToBindHere: true})), takes(lifecycle.Place)},
		"the claim's data source is of a kind that no registration lists": {seen(func(o *scene) {
			o.root.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To("example.com"), Kind: "Image", Name: "i"}
		}), says(v1alpha1.ReasonDataSourceUnsupported)},
		"the claim is being deleted: nothing is created for it": {seen(rootDeleted), decision{}},
		"the claim is being deleted, but a Pod still uses it":   {seen(pushed, rootDeleted), decision{}},

		// The member cannot provision the claim.
		"the member's provisioner fails: the claim reports it":                               {seen(pushed, fails), says(v1alpha1.ReasonProvisioningFailed)},
		"the member's scheduler finds no node for the consumer":                              {seen(pushed, usedBy(volume.Consumer{Problem: unschedulable})), says(v1alpha1.ReasonPodUnschedulable)},
		"the provisioner and the scheduler fail: the provisioner's message takes precedence": {seen(pushed, fails, usedBy(volume.Consumer{Problem: unschedulable})), says(v1alpha1.ReasonProvisioningFailed)},
		"the provisioner fails, and the claim is placed in another member: the claim waits":  {seen(pushed, fails, placedIn(elsewhereID)), says(v1alpha1.ReasonPlacedElsewhere)},
		"reassigned to this member: nothing is written before the scheduler selects it":      {seen(placedIn(""), steeredTo(here.NodeName), usedBy(volume.Consumer{})), decision{}},
		"reassigned to this member, and no Pod uses the claim":                               {seen(placedIn(""), steeredTo(here.NodeName)), decision{}},
		"reassigned to this member, and the scheduler selects it: placed (I3)":               {seen(placedIn(""), steeredTo(here.NodeName), usedBy(volume.Consumer{}, volume.Consumer{AboutToBindHere: true})), takes(lifecycle.Place)},
		"reassigned to this member, and placed: the leaf claim is created":                   {seen(steeredTo(here.NodeName)), leaf},
		"reassigned to this member, but the first member is not proven empty yet (I3)":       {seen(placedIn(elsewhereID), steeredTo(here.NodeName), usedBy(volume.Consumer{AboutToBindHere: true})), says(v1alpha1.ReasonPlacedElsewhere)},
		"reassigned to another member before, but the scheduler selected this member":        {seen(placedIn(""), steeredTo(elsewhereNode)), takes(lifecycle.Place)},
		"reassigned to another member: the unbound leaf is withdrawn":                        {seen(pushed, fails, steeredTo(elsewhereNode), selected(elsewhereNode)), takes(lifecycle.Withdraw)},

		// The scheduler changed its decision.
		"the scheduler removed its selection: the unbound leaf is withdrawn":                                       {seen(pushed, selected("")), takes(lifecycle.Withdraw)},
		"the scheduler selected another node: the unbound leaf is withdrawn":                                       {seen(pushed, selected(elsewhereNode)), takes(lifecycle.Withdraw)},
		"the scheduler's selection and the class were deleted: the unbound leaf is withdrawn (I1)":                 {seen(pushed, selected(""), noClass), takes(lifecycle.Withdraw)},
		"withdrawn: placed-in is removed once the member is proven empty (I3)":                                     {seen(selected("")), takes(lifecycle.Unplace)},
		"withdrawn, and the class was deleted in the host: placed-in is removed as well (I1)":                      {seen(selected(""), noClass), takes(lifecycle.Unplace)},
		"no longer requested, but the leaf is already bound: it stays, because there must be only one volume (I3)": {seen(leafBound, selected(elsewhereNode)), decision{}},
		"no longer requested, and the leaf is being deleted":                                                       {seen(pushed, leafDeleted, selected("")), decision{}},
		"the claim is being deleted and no longer requested: the leaf is withdrawn":                                {seen(pushed, rootDeleted, selected("")), takes(lifecycle.Withdraw)},

		// The root was deleted.
		"the root is gone, and the leaf is unbound: withdrawn after proof": {seen(pushed, rootGone), decision{step: lifecycle.Withdraw, rootGone: true}},
		"the root was re-created, and the leaf belongs to the old root":    {seen(pushed, rootNewer), decision{step: lifecycle.Withdraw, rootGone: true}},
		"the root is gone, its volume is retained, and no host PV represents it: the name is freed, and the data is kept (I1, I2)": {
			seen(leafBound, stampedVolume, retainedVolume, rootGone), takes(lifecycle.DeleteRetained)},
		"the root is gone, and the host PV decides (I2)":                                                                                  {seen(leafBound, stampedVolume, retainedVolume, hostHolds, rootGone), decision{}},
		"the root is gone, and the host PV is released: root_pv keeps the data and deletes the leaf (I2)":                                 {seen(leafBound, stampedVolume, retainedVolume, hostHolds, hostReleased, rootGone), decision{owner: lifecycle.RootPV, step: lifecycle.DeleteClaim}},
		"the root is gone, and both sides' policies are Delete: root_pv destroys the volume (I2)":                                         {seen(leafBound, bound, hostReleased, rootGone), decision{owner: lifecycle.RootPV, step: lifecycle.SetDelete}},
		"the root is gone, its volume has policy Delete, and no host PV represents it (I2)":                                               {seen(leafBound, stampedVolume, rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Secure}},
		"the root is gone, and its volume has policy Retain and was never mirrored (I1)":                                                  {seen(leafBound, retainedVolume, rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Stamp}},
		"the volume is reused, and refers to its new claim: the member's PV controller is notified":                                       {seen(leafBound, bound, pointsBack("leaf-uid")), takes(lifecycle.Touch)},
		"the volume is reused, and the member's PV controller is already notified":                                                        {seen(leafBound, bound, pointsBack("leaf-uid"), nudged), decision{}},
		"the volume is reused, but does not refer to its new claim yet":                                                                   {seen(leafBound, bound, pointsBack("another")), decision{owner: lifecycle.LeafPV, step: lifecycle.Repoint}},
		"the root is gone, and the volume was never mirrored: destroyed after proof (I1)":                                                 {seen(leafBound, rootGone), takes(lifecycle.DestroyUnmirrored)},
		"the root was re-created, and the old volume was never mirrored (I1)":                                                             {seen(leafBound, rootNewer), takes(lifecycle.DestroyUnmirrored)},
		"the root is gone, the leaf PV has no stamp, and the host has a PV for it (I2)":                                                   {seen(leafBound, hostHolds, rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Stamp}},
		"the root is gone, and the host has a PV for a leaf PV with a different UID (I2)":                                                 {seen(leafBound, hostHolds, replaced, rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Secure}},
		"the root is gone, and the leaf claim may come from the member's backup (I2)":                                                     {seen(leafBound, memberRestored(0), rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Stamp}},
		"the root is gone, and the host may have lost it in a restore (I2)":                                                               {seen(leafBound, hostRestored(0), rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Stamp}},
		"the root was re-created after a restore of the host, and requests the volume, which has no stamp yet (I2)":                       {seen(leafBound, hostRestored(0), rootNewer, func(o *scene) { o.root.Spec.VolumeName = o.leafVolume.Name }), decision{owner: lifecycle.LeafPV, step: lifecycle.Stamp}},
		"the root is gone, and the leaf claim is younger than the host's restore":                                                         {seen(leafBound, hostRestored(-time.Second), rootGone), takes(lifecycle.DestroyUnmirrored)},
		"the root is gone, and the leaf claim is younger than the member's restore":                                                       {seen(leafBound, memberRestored(-time.Second), rootGone), takes(lifecycle.DestroyUnmirrored)},
		"the root is gone, and the leaf PV was replaced: reported":                                                                        {seen(leafBound, stampedVolume, retainedVolume, hostHolds, replaced, rootGone), says(v1alpha1.ReasonVolumeReplaced)},
		"the root was re-created, and the leaf PV was replaced: reported":                                                                 {seen(leafBound, stampedVolume, retainedVolume, hostHolds, replaced, rootNewer), says(v1alpha1.ReasonVolumeReplaced)},
		"the root is gone, the leaf has lost its volume, and the host has a PV: root_pv decides":                                          {seen(leafBound, hostHolds, noLeafVolume, leafLost, rootGone), decision{}},
		"the root is gone, and the volume has a stamp, so it may have been mirrored (I2)":                                                 {seen(leafBound, stampedVolume, rootGone), decision{owner: lifecycle.LeafPV, step: lifecycle.Secure}},
		"the root is gone, and the leaf PV is not in the cache: no evidence (I2)":                                                         {seen(leafBound, noLeafVolume, rootGone), decision{}},
		"the root is gone, and so is the volume that the leaf was to use again":                                                           {seen(leafBound, rootGone, noLeafVolume, func(o *scene) { o.leaf.Status.Phase = corev1.ClaimPending }), takes(lifecycle.DeleteLost)},
		"the root is gone, and the leaf PV belongs to another claim (I4)":                                                                 {seen(leafBound, rootGone, func(o *scene) { o.leafVolume.Spec.ClaimRef.UID = "other" }), decision{}},
		"the root is gone, and the leaf PV has no claimRef yet":                                                                           {seen(leafBound, rootGone, func(o *scene) { o.leafVolume.Spec.ClaimRef = nil }), decision{}},
		"the root is gone, and its volume belongs to another claim: root_pv deletes the leaf":                                             {seen(leafBound, bound, handedOn, rootGone), decision{owner: lifecycle.RootPV, step: lifecycle.DeleteStale}},
		"the root is gone, its volume belongs to another claim, and the leaf is being deleted: the next step is for the other claim (I3)": {seen(leafBound, bound, handedOn, leafDeleted, rootGone), decision{}},
		"the root was re-created, and its volume belongs to another claim":                                                                {seen(leafBound, bound, handedOn, rootNewer, boundTo("")), decision{owner: lifecycle.RootPV, step: lifecycle.DeleteStale}},
		"the root was re-created, and the leaf is being deleted: nothing is done for the new root (I3)":                                   {seen(leafBound, bound, handedOn, leafDeleted, rootNewer, boundTo("")), decision{}},
		"the root was re-created, and the other claim is placed: no leaf is created for the new root (I3)":                                {seen(leafBound, bound, handedOn, otherPlaced, leafDeleted, rootNewer, boundTo("")), decision{}},
		"the root is gone, and the leaf of the other claim is unbound: this leaf is not withdrawn":                                        {seen(leafBound, bound, handedOn, otherPlaced, otherPushed, leafDeleted, rootGone), decision{}},
		"the root was re-created and bound to the volume: root_pv deletes the earlier leaf":                                               {seen(leafBound, bound, usedAgain), decision{owner: lifecycle.RootPV, step: lifecycle.DeleteStale}},
		"the root was re-created and bound to the volume, and the earlier leaf is already being deleted":                                  {seen(leafBound, bound, usedAgain, leafDeleted), decision{}},
		"the root was re-created, and its leaf volume was deleted: the earlier leaf is deleted (I6)":                                      {seen(leafBound, bound, usedAgain, noLeafVolume), takes(lifecycle.DeleteLeft)},
		"an admin freed the volume for the root while another claim still has it: reported (I6)":                                          {seen(leafBound, bound, heldByLiving), decision{reason: v1alpha1.ReasonVolumeMismatch, live: true}},
		"the root is gone, and the leaf is being deleted":                                                                                 {seen(pushed, leafDeleted, rootGone), decision{}},

		"the root is gone, and the leaf has lost its volume: the leaf is deleted": {seen(leafBound, noLeafVolume, leafLost, rootGone), takes(lifecycle.DeleteLost)},
		"the root was re-created, and the leaf has lost its volume":               {seen(leafBound, noLeafVolume, leafLost, rootNewer), takes(lifecycle.DeleteLost)},

		// The root was re-created and requests its earlier volume by name.
		"re-created, and requests its volume: the placement is recorded first (I3)":                                           {seen(comesBack, placedIn("")), takes(lifecycle.Place)},
		"re-created, requests its volume, and is placed here: the new root gets the leaf claim":                               {seen(comesBack), takes(lifecycle.AdoptClaim)},
		"re-created, requests its volume, and is placed elsewhere (I3)":                                                       {seen(comesBack, placedIn(elsewhereID)), says(v1alpha1.ReasonPlacedElsewhere)},
		"re-created, requests its volume, and another member has an orphan with the same name (I8)":                           {seen(comesBack, func(o *scene) { o.rivals = []string{"cluster39"} }), says(v1alpha1.ReasonAmbiguousVolume)},
		"re-created in a new namespace, and requests its volume (I8)":                                                         {seen(comesBack, newTenant), says(v1alpha1.ReasonAdoptionUnconfirmed)},
		"re-created in a new namespace, requests its volume, and an admin allows it":                                          {seen(comesBack, newTenant, allowed), takes(lifecycle.AdoptClaim)},
		"re-created, and requests its volume and more than its capacity":                                                      {seen(comesBack, grown("2Gi")), says(v1alpha1.ReasonVolumeMismatch)},
		"re-created, requests its volume, and its class is not Xylem's (I4)":                                                  {seen(comesBack, func(o *scene) { o.class.Provisioner = "other" }), decision{}},
		"re-created, requests its volume, and the leaf claim is being deleted":                                                {seen(comesBack, leafDeleted), decision{}},
		"re-created, and requests its volume, whose stamp names a different root than the leaf claim's (I8)":                  {seen(comesBack, func(o *scene) { o.asked.Annotations[v1alpha1.AnnotationRootUID] = "forged" }), decision{owner: lifecycle.LeafPV, step: lifecycle.Secure}},
		"a claim that is not Xylem's uses the requested volume":                                                               {seen(comesBack, noLeaf), decision{reason: v1alpha1.ReasonVolumeMismatch, live: true}},
		"a claim that is not Xylem's uses the requested volume, and the class belongs to another provisioner (I4)":            {seen(comesBack, noLeaf, func(o *scene) { o.class.Provisioner = "ebs.csi.aws.com" }), decision{}},
		"a claim that is not Xylem's uses the requested volume, and the claim is placed elsewhere":                            {seen(comesBack, noLeaf, placedIn("another")), says(v1alpha1.ReasonPlacedElsewhere)},
		"the volume was abandoned: an admin must allow its use (I8)":                                                          {seen(comesBack, noLeaf, askedReleased), says(v1alpha1.ReasonAdoptionUnconfirmed)},
		"the volume was abandoned, and an admin allows its use: the placement is recorded":                                    {seen(comesBack, noLeaf, askedReleased, allowed, placedIn("")), takes(lifecycle.Place)},
		"the volume was abandoned, an admin allows its use, and the claim is placed: leaf_pv continues":                       {seen(comesBack, noLeaf, askedReleased, allowed), decision{}},
		"re-created, and requests no volume: its name is freed, and the data is kept (I2)":                                    {seen(comesBack, func(o *scene) { o.root.Spec.VolumeName, o.asked = "", nil }), takes(lifecycle.DeleteRetained)},
		"the root is gone, and no host PV represents the volume, which was in use":                                            {seen(comesBack, rootGone, func(o *scene) { o.asked = nil }), takes(lifecycle.DeleteRetained)},
		"the host was restored to a state before the claim was placed, and its volume is here: placed":                        {seen(leafBound, stampedVolume, selected(""), placedIn(""), hostRestored(time.Minute)), takes(lifecycle.Place)},
		"the host was restored to a state before the claim was placed, and the scheduler selected another member":             {seen(leafBound, stampedVolume, selected(elsewhereNode), placedIn(""), hostRestored(time.Minute)), takes(lifecycle.Place)},
		"the host's restore is not confirmed: only the member shows the placement (I8)":                                       {seen(leafBound, stampedVolume, selected(elsewhereNode), placedIn(""), hostRestored(time.Minute), unconfirmed), decision{reason: v1alpha1.ReasonAdoptionUnconfirmed, live: true}},
		"the host was restored before the leaf claim was created (I8)":                                                        {seen(leafBound, stampedVolume, selected(""), placedIn(""), hostRestored(-time.Minute)), decision{reason: v1alpha1.ReasonAdoptionUnconfirmed, live: true}},
		"the claim has a volume here but was never placed, without a restore (I8)":                                            {seen(leafBound, stampedVolume, selected(""), placedIn("")), decision{reason: v1alpha1.ReasonAdoptionUnconfirmed, live: true}},
		"the claim has a volume here but was never placed, without a restore, and the scheduler selected another member (I8)": {seen(leafBound, stampedVolume, selected(elsewhereNode), placedIn("")), decision{reason: v1alpha1.ReasonAdoptionUnconfirmed, live: true}},
		"the claim has a volume here but was never placed, and an admin allows it: placed":                                    {seen(leafBound, stampedVolume, selected(""), placedIn(""), allowed), takes(lifecycle.Place)},
		"the claim has an unbound leaf here but was never placed: withdrawn (I8)":                                             {seen(pushed, selected(""), placedIn("")), takes(lifecycle.Withdraw)},
		"the claim has an unbound leaf here, and the host was restored: withdrawn, because no node is selected (I1)":          {seen(pushed, selected(""), placedIn(""), hostRestored(time.Minute)), takes(lifecycle.Withdraw)},

		// Bound to a volume in this member.
		"bound and pushed: settled (I5)":                                                                         {seen(leafBound, bound), decision{}},
		"bound, but not placed: the placement is recorded (I3)":                                                  {seen(leafBound, bound, placedIn("")), takes(lifecycle.Place)},
		"bound, and placed elsewhere: reported (I3)":                                                             {seen(leafBound, bound, placedIn(elsewhereID)), says(v1alpha1.ReasonPlacedElsewhere)},
		"bound, and the member lost the volume: nothing is created (I2)":                                         {seen(bound, noLeafVolume), says(v1alpha1.ReasonVolumeLost)},
		"bound, and the member lost the volume and the class: nothing is created (I2)":                           {seen(bound, noClass, noLeafVolume), says(v1alpha1.ReasonVolumeLost)},
		"bound, and the volume is being deleted in the member":                                                   {seen(leafBound, bound, leafTerminating), says(v1alpha1.ReasonVolumeTerminating)},
		"bound, the volume is being deleted in the member, and the leaf claim was deleted: none is created":      {seen(bound, leafTerminating), says(v1alpha1.ReasonVolumeTerminating)},
		"not bound yet, and the volume is being deleted in the member":                                           {seen(leafBound, leafTerminating), says(v1alpha1.ReasonVolumeTerminating)},
		"not bound yet, the volume is being deleted in the member, and the scheduler has selected another node":  {seen(leafBound, leafTerminating, selected("other")), says(v1alpha1.ReasonVolumeTerminating)},
		"the leaf is not bound either, the volume is being deleted, and the scheduler has selected another node": {seen(pushed, leafTerminating, selected("other")), takes(lifecycle.Withdraw)},
		"not bound yet, and the host PV is being deleted":                                                        {seen(leafBound, mirrorTerminating), says(v1alpha1.ReasonVolumeTerminating)},
		"not bound yet, the host PV is being deleted, and the leaf claim was deleted":                            {seen(mirrorTerminating), says(v1alpha1.ReasonVolumeTerminating)},
		"bound, and the volume in the member was replaced by another (I2)":                                       {seen(bound, replaced), says(v1alpha1.ReasonVolumeReplaced)},
		"bound, and the member lost the claim: re-created for that volume":                                       {seen(bound), again},
		"bound, the member lost the claim, and the class was deleted in the host":                                {seen(bound, noClass), again},
		"bound, and the member lost the claim and its class":                                                     {seen(bound, func(o *scene) { o.memberClasses = nil }), again},
		"bound, the member lost the claim, and its namespace is foreign (I4)":                                    {seen(bound, func(o *scene) { o.namespace.Labels = nil }), says(v1alpha1.ReasonNamespaceConflict)},
		"bound, and the member lost the claim and no longer admits its namespace":                                {seen(bound, wantsTeam), says(v1alpha1.ReasonNamespaceNotAdmitted)},
		"bound and pushed, and the namespace is no longer admitted: the leaf stays":                              {seen(leafBound, bound, wantsTeam), decision{}},
		"bound, the member lost the claim, and its namespace is being created":                                   {seen(bound, func(o *scene) { o.namespace = nil }), decision{}},
		"bound, and the root is being deleted: nothing is created":                                               {seen(bound, rootDeleted), decision{}},
		"bound, and the leaf is unbound and requests any volume: withdrawn (I3)":                                 {seen(pushed, bound), takes(lifecycle.Withdraw)},
		"bound, and the leaf is not bound yet, although its volume refers to it: nothing is done (I2)":           {seen(pushed, bound, pointsBack("leaf-uid")), decision{}},
		"bound, and the leaf is bound to another volume: reported (I3)":                                          {seen(leafBound, bound, func(o *scene) { o.leaf.Spec.VolumeName = "pv-2" }), says(v1alpha1.ReasonVolumeMismatch)},
		"bound, and the leaf is Lost":                                                                            {seen(leafBound, bound, func(o *scene) { o.leaf.Status.Phase = corev1.ClaimLost }), says(v1alpha1.ReasonVolumeLost)},
		"bound, and the leaf of an earlier root still exists":                                                    {seen(leafBound, stampedVolume, bound, rootNewer), decision{}},
		"the user requests more capacity":                                                                        {seen(leafBound, bound, grown("2Gi")), decision{step: lifecycle.Grow, to: "2Gi"}},
		"the user requests more capacity before the leaf is bound":                                               {seen(leafBound, bound, grown("2Gi"), pointsBack("leaf-uid"), nudged), decision{}},
		"the user requests other volume attributes":                                                              {seen(leafBound, bound, func(o *scene) { o.root.Spec.VolumeAttributesClassName = ptr.To("fast") }), takes(lifecycle.Modify)},
		"the user requests volume attributes, and the leaf is not bound yet":                                     {seen(leafBound, bound, pointsBack("leaf-uid"), nudged, withAttributes("gold", "", "", ""), func(o *scene) { o.leaf.Status.Phase = corev1.ClaimPending }), decision{}},
		"the leaf has the class that the user's class maps to":                                                   {seen(leafBound, bound, withAttributes("gold", "m-gold", "gold", "m-gold")), takes(lifecycle.None)},
		"the user switches to a class that maps to the same member class":                                        {seen(leafBound, bound, withAttributes("silver", "m-gold", "gold", "m-gold")), takes(lifecycle.Modify)},
		"someone in the member changed the class":                                                                {seen(leafBound, bound, withAttributes("gold", "m-lead", "gold", "m-gold")), takes(lifecycle.Modify)},
		"the user removes a class that was never applied":                                                        {seen(leafBound, bound, withAttributes("", "m-gold", "gold", "")), takes(lifecycle.Modify)},
		"the user sets no class, and the member applied one":                                                     {seen(leafBound, bound, withAttributes("", "m-gold", "", "m-gold")), says(v1alpha1.ReasonModifyUnsupported)},

		// Bound elsewhere.
		"bound elsewhere, and no leaf here":                                                         {seen(boundTo("pv-9")), decision{}},
		"bound elsewhere, placed here, and no leaf here: placed-in is removed (I3)":                 {seen(boundTo("pv-9"), away), takes(lifecycle.Unplace)},
		"bound and placed elsewhere, and no leaf here":                                              {seen(boundTo("pv-9"), away, placedIn(elsewhereID)), decision{}},
		"bound elsewhere, and the leaf here is unbound: withdrawn (I3)":                             {seen(pushed, boundTo("pv-9")), takes(lifecycle.Withdraw)},
		"bound elsewhere, and the leaf here is bound: its volume is a surplus (I3)":                 {seen(leafBound, boundTo("pv-9"), away), says(v1alpha1.ReasonSurplusVolume)},
		"bound to a volume that is not in the cache, and the leaf is bound: a mismatch is reported": {seen(leafBound, boundTo("pv-9")), says(v1alpha1.ReasonVolumeMismatch)},
		"bound to its mirror, which is not in the cache yet":                                        {seen(leafBound, boundTo("pv-1")), decision{}},
		"bound to its mirror, which has a suffix and is not in the cache yet (I3)":                  {seen(leafBound, boundTo(hostpv.HostVolumeName("pv-1", here.ClusterID, true))), decision{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decided(tc.observed), cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// The message lists the available classes, and where to change the mapping.
func TestMissingClassListsClasses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*scene)
		want   []string
	}{
		"the same name": {func(o *scene) { o.memberClasses = []string{"slow", "fast"} },
			[]string{`no StorageClass "disk"`, "(by name;", "existing classes: fast, slow)", `ClusterRegistration "cluster38"`}},
		"mapped by the registration": {func(o *scene) { o.rules = mapping("gp9") },
			[]string{`no StorageClass "gp9"`, `storage.classes of ClusterRegistration "cluster38"`, "existing classes: disk, slow)"}},
		"named by the class's parameter": {func(o *scene) { o.class.Parameters = map[string]string{v1alpha1.ParameterMemberClass: "gp8"} },
			[]string{`no StorageClass "gp8"`, v1alpha1.ParameterMemberClass}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planForClaim(seen(tc.change))
			if plan.Step != lifecycle.Unselect {
				t.Fatalf("plan is %+v, want Unselect", plan)
			}
			for _, want := range tc.want {
				if !strings.Contains(plan.Report.Message, want) {
					t.Errorf("message %q lacks %q", plan.Report.Message, want)
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
		"new: any volume of the member's class":                               {seen(func(o *scene) { o.rules = mapping("slow") }), "", "slow", "1Gi"},
		"reused: the same volume, with the volume's own class":                {seen(bound), "pv-1", "gp3", "1Gi"},
		"reused, and the root requests more: the volume's current size first": {seen(bound, grown("5Gi")), "pv-1", "gp3", "1Gi"},
		"reused, and the volume is larger than requested":                     {seen(bound, func(o *scene) { o.leafVolume.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi") }), "pv-1", "gp3", "1Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			root := tc.observed.Root.DeepCopy()
			if plan := planForClaim(tc.observed); plan.Step != lifecycle.CreateClaim {
				t.Fatalf("plan is %+v, want CreateClaim", plan)
			}
			leaf, refusal := volume.LeafClaim(tc.observed.Observed)
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
				t.Error("the leaf claim has the host's selected-node, want none")
			}
			if diff := cmp.Diff(root, tc.observed.Root); diff != "" {
				t.Errorf("deciding changed the root:\n%s", diff)
			}
		})
	}
}

// At most one member reports a problem, whatever the claim's annotations are. If two members set
// the Placed condition, they would overwrite each other forever (I5).
func TestOneMemberReports(t *testing.T) {
	other := mirror.Member{Registration: "cluster39", ClusterID: elsewhereID, NodeName: elsewhereNode, HostID: here.HostID}
	for name, tc := range map[string]struct {
		change       []func(*scene)
		here, others bool
	}{
		"this member's node is selected":                                              {[]func(*scene){placedIn("")}, true, false},
		"this member's node is selected, but the claim is placed in the other member": {[]func(*scene){placedIn(elsewhereID)}, true, false},
		"placed here, but the other member's node is selected":                        {[]func(*scene){selected(elsewhereNode)}, false, true},
		"placed here, and no node is selected":                                        {[]func(*scene){selected("")}, true, false},
		"a host node is selected":                                                     {[]func(*scene){selected("worker-1")}, false, false},
		"bound and placed here, but the other member's node is selected":              {[]func(*scene){boundTo("pv-1"), selected(elsewhereNode)}, true, false},
		"bound and placed in the other member, but this member's node is selected":    {[]func(*scene){boundTo("pv-1"), placedIn(elsewhereID)}, false, true},
		"no member has the claim: each member may remove its own report":              {[]func(*scene){selected(""), placedIn("")}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(tc.change...)
			for _, m := range []struct {
				mirror.Member
				want bool
			}{{here, tc.here}, {other, tc.others}} {
				if got := o.PlacedConditionOwnedBy(m.Member); got != m.want {
					t.Errorf("member %s reports on the claim: %v, want %v", m.Registration, got, m.want)
				}
			}
		})
	}
	if (&observe.Claim{}).PlacedConditionOwnedBy(here) {
		t.Error("a member reports on a deleted claim")
	}
}

// The list of a member's classes is limited and sanitized, however many classes there are and
// whatever their names.
func TestClassNotFoundListsExistingClasses(t *testing.T) {
	said := func(classes ...string) string {
		plan := planForClaim(seen(func(o *scene) { o.memberClasses = classes }))
		if plan.Step != lifecycle.Unselect {
			t.Fatalf("plan is %+v, want Unselect", plan)
		}
		return plan.Report.Message
	}
	for _, part := range []string{here.Registration, `no StorageClass "disk" (by name;`, "existing classes: fast, slow)"} {
		if message := said("slow", "fast"); !strings.Contains(message, part) {
			t.Errorf("%q lacks %q", message, part)
		}
	}
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("\x1b[2Jclass-%d", i)
	}
	if message := said(many...); len(message) > 1024 || strings.Contains(message, "\x1b") {
		t.Errorf("the message has %d bytes, want at most 1024 without control characters: %.200q", len(message), message)
	}
}

// Each read shows the current cache, and the decision is based on the last read.
func TestObserveReadsTheSameTwice(t *testing.T) {
	for name, tc := range map[string]struct {
		scene scene
		late  func(host, leaf *store, s scene)
		want  decision
	}{
		"the leaf claim is created between two reads": {sceneOf(leafBound, bound, grown("2Gi")), func(_, leaf *store, s scene) { leaf.late[s.leaf] = 1 }, decision{step: lifecycle.Grow, to: "2Gi"}},
		"the root is created between two reads":       {sceneOf(leafBound, bound, grown("2Gi")), func(host, _ *store, s scene) { host.late[s.root] = 1 }, decision{step: lifecycle.Grow, to: "2Gi"}},
		"a PV with the requested name is created between two reads": {sceneOf(comesBack, func(o *scene) {
			o.hosts = []corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}}}
		}), func(host, _ *store, s scene) { host.late[&s.hosts[0]] = 1 }, decision{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := tc.scene.reconciler()
			host, isHost := r.Host.(*store)
			leaf, isLeaf := r.Cache.(*store)
			if !isHost || !isLeaf {
				t.Fatal("the reconciler does not use the scene's caches")
			}
			host.add(tc.scene.class)
			tc.late(host, leaf, tc.scene)
			o, err := r.newClaimObserver().ObserveClaim(t.Context(), client.ObjectKeyFromObject(tc.scene.root))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, decided(o), cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// If a claim with another name now has the volume, that claim is not observed as the root.
func TestObserveKeepsTheRoot(t *testing.T) {
	if o := seen(leafBound, bound, handedOn, leafDeleted, rootGone); o.Root != nil || o.Leaf != nil || o.Stale.Leaf.UID != "leaf-uid" {
		t.Errorf("root is %v, and the left-over leaf claim %s, want no root and leaf-uid", o.Root, o.Stale.Leaf.UID)
	}
	if o := seen(leafBound, bound, handedOn, otherPushed, leafDeleted, rootNewer); o.Root.UID != "newer" || o.Leaf != nil || o.Stale.Leaf.UID != "leaf-uid" {
		t.Errorf("root is %s, and the left-over leaf claim %s, want newer and leaf-uid", o.Root.UID, o.Stale.Leaf.UID)
	}
}

// withAttributes sets four names of VolumeAttributesClasses: the root's, the leaf's, the host class
// that is recorded on the leaf, and the class that the member applied.
func withAttributes(root, leaf, noted, applied string) func(*scene) {
	return func(o *scene) {
		if noted != "" {
			o.leaf = pvc.ClaimWithAttributesClass(o.leaf, "m-gold", noted)
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

// adopting returns the rules of a registration whose admin allows the adoption of a volume.
func adopting(volume string) placement.Rules {
	return placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationAdopt: volume}}})
}

// wantsTeam lets the registration admit only namespaces with a label.
func wantsTeam(o *scene) {
	o.rules = placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{
		Namespaces: v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"team": "a"}}}})
}

func ofTeam(o *scene) { o.labels = map[string]string{"team": "a"} }

// mapping returns the rules of a registration that maps the class.
func mapping(to string) placement.Rules {
	return placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{
		Storage: v1alpha1.StorageSpec{Classes: []v1alpha1.ClassMapping{{Host: "disk", Member: to}}}}})
}

// copying makes claim "golden", which is ready in this member, the data source of the claim.
func copying(change ...func(*volume.SourceInMember)) func(*scene) {
	return func(o *scene) {
		o.root.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
		o.root.Annotations[v1alpha1.AnnotationSource] = here.ClusterID + "/golden-uid"
		golden := &corev1.PersistentVolumeClaim{}
		golden.Spec.VolumeName, golden.Status.Phase = "pv-golden", corev1.ClaimBound
		disk := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-golden", UID: "pv-golden-uid"}}
		disk.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com"}
		o.from = &volume.SourceInMember{
			At:    placement.CopyLocation{DataSourceRecord: mirror.DataSourceRecord{ClusterID: here.ClusterID, UID: "golden-uid"}, LeafVolume: "pv-golden", LeafUID: "pv-golden-uid"},
			Class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "disk.example.com"},
			Claim: golden, Origin: mirror.Origin{UID: "golden-uid"}, Volume: disk,
		}
		o.from.Of, _ = mirror.DataSourceOf(o.root)
		for _, c := range change {
			c(o.from)
		}
	}
}

// restoring makes snapshot "golden", which is ready in this member, the data source of the claim.
func restoring(change ...func(*volume.SourceInMember)) func(*scene) {
	return func(o *scene) {
		copying()(o)
		o.root.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(mirror.SnapshotGroup), Kind: mirror.SnapshotKind, Name: "golden"}
		o.from.Of, _ = mirror.DataSourceOf(o.root)
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
		origin := mirror.Origin{HostID: here.HostID, Root: types.NamespacedName{Namespace: o.root.Namespace, Name: "golden"}, UID: o.from.At.UID}
		origin.StampLeaf(o.from.Snapshot)
		origin.StampLeaf(o.from.Content)
		for _, c := range change {
			c(o.from)
		}
	}
}

// unread means that the member's snapshots cannot be read.
func unread(f *volume.SourceInMember) {
	f.Snapshot, f.Content, f.Origin = nil, nil, mirror.Origin{}
	f.UnreadableCause = &mirror.Refusal{Reason: v1alpha1.ReasonSnapshotsUnsupported, Message: "not served"}
}

func notReady(f *volume.SourceInMember) {
	f.At = placement.CopyLocation{Refusal: &mirror.Refusal{Reason: v1alpha1.ReasonSourceNotReady, Message: "not yet"}}
}

// asksToo gives the leaf claim the root's data source.
func asksToo(o *scene) {
	o.leaf.Spec.DataSource = o.root.Spec.DataSource
	metav1.SetMetaDataAnnotation(&o.leaf.ObjectMeta, v1alpha1.AnnotationSource, "golden-uid")
}
