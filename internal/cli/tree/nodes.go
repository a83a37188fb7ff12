package tree

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// builder builds nodes from the gathered objects.
type builder struct{ *inspect.Facts }

// BuildTree returns the tree of the gathered objects.
func BuildTree(read *inspect.Facts) *inspect.Tree {
	f := builder{read}
	t := &inspect.Tree{TypeMeta: metav1.TypeMeta{APIVersion: inspect.APIVersion, Kind: inspect.TreeKind}, Missing: f.Missing}
	switch {
	case f.Snapshot != nil:
		t.Root = f.nodeOfSnapshot(f.Snapshot)
	case f.Pod == nil && f.Claims[0].Key.Name == "":
		t.Root = f.nodeOfVolume(&f.Claims[0])
	case f.Pod == nil:
		t.Root = f.nodeOfClaim(&f.Claims[0])
	default:
		t.Root = f.nodeOfPod(f.Pod)
		for i := range f.Claims {
			t.Root.Children = append(t.Root.Children, f.nodeOfClaim(&f.Claims[i]))
		}
		// Without it, the tree of a Pod without claims would not show that its member is away.
		if r := f.Registration(f.MemberOfPod(f.Pod)); r != nil && !podstatus.IsPodFinished(f.Pod.Pod) && !leadsToRegistration(&t.Root, r.Name) {
			t.Root.Children = append(t.Root.Children, registrationNode(r))
		}
	}
	for _, id := range f.ClusterIDs() {
		if !f.Members[id] {
			t.Recorded = append(t.Recorded, f.NameOfMember(id, f.volumeInMember(id)))
		}
	}
	return t
}

// leadsToRegistration reports whether a node or an object below it is the given registration.
func leadsToRegistration(n *inspect.Node, registration string) bool {
	return n.Kind == inspect.KindRegistration && n.Name == registration ||
		slices.ContainsFunc(n.Children, func(child inspect.Node) bool { return leadsToRegistration(&child, registration) })
}

func (f builder) volumeInMember(clusterID string) *corev1.PersistentVolume {
	for i := range f.Claims {
		if f.MemberOfClaim(&f.Claims[i]) == clusterID {
			return f.Claims[i].Volume
		}
	}
	return nil
}

// NodeOfObject returns the node for an object that was read.
func NodeOfObject(kind, cluster string, obj client.Object, state string, health inspect.Health) inspect.Node {
	n := inspect.Node{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), Cluster: cluster, State: state, Health: health}
	if created := obj.GetCreationTimestamp(); !created.IsZero() {
		n.Created = &created
	}
	if obj.GetDeletionTimestamp() != nil {
		n.State, n.Health = inspect.StateTerminating, inspect.Waiting
		if finalizers := obj.GetFinalizers(); len(finalizers) > 0 {
			n.Details = append(n.Details, "has finalizers "+strings.Join(finalizers, ", "))
		}
	}
	return n
}

// sinceIfHealthy returns well, the time at which the object became healthy, or zero if it is not healthy.
func sinceIfHealthy(n *inspect.Node, well metav1.Time) metav1.Time {
	if n.Health != inspect.Good {
		return metav1.Time{}
	}
	return well
}

// nodeOfClaim returns the node for a host claim, with all objects that it leads to.
func (f builder) nodeOfClaim(c *inspect.ClaimFacts) inspect.Node {
	if c.Claim == nil {
		return f.nodeOfMissingClaim(c)
	}
	n := claimNodeWithState("", c.Claim)
	if slices.ContainsFunc(n.Conditions, inspect.ReportsProblem) {
		n.Health = inspect.Bad
	}
	n.Events = eventsWithoutCondition(relevantEvents(c.Events, c.Claim.Status.Phase != corev1.ClaimBound, sinceIfHealthy(&n, claimHealthySince(c.Claim, c.Volume))), n.Conditions)
	f.addPodsInUse(&n, c)
	if !c.BelongsToXylem() {
		n.Details = append(n.Details, describeOtherDriver(c))
		return f.addPodsAndOrphans(n, c)
	}
	if c.Claim.Status.Phase == corev1.ClaimPending && len(c.Pods) == 0 && f.Pod == nil && waitsForConsumer(c.Class) {
		n.Details = append(n.Details, "no Pod uses the claim yet, and its class waits for the first Pod")
	}
	if c.ClassAbsent && c.Claim.Spec.VolumeName == "" {
		n.Children = append(n.Children, inspect.Node{Kind: inspect.KindClass, Name: hostpv.ClassNameOf(c.Claim), State: inspect.StateNotFound, Health: inspect.Bad})
	}
	switch id := f.MemberOfClaim(c); {
	case c.Volume != nil:
		n.Children = append(n.Children, f.nodeOfVolume(c))
	case c.Claim.Spec.VolumeName != "" && !f.couldNotRead(inspect.KindVolume+" "+c.Claim.Spec.VolumeName):
		n.Children = append(n.Children, inspect.Node{Kind: inspect.KindVolume, Name: c.Claim.Spec.VolumeName, State: inspect.StateNotFound, Health: inspect.Bad})
	case id != "":
		n.Children = append(n.Children, f.nodeOfMember(id, c))
	}
	return f.addPodsAndOrphans(n, c)
}

// nodeOfSnapshot returns the node for a snapshot, with its claim.
func (f builder) nodeOfSnapshot(s *inspect.SnapshotFacts) inspect.Node {
	state, health := "NotReady", inspect.Waiting
	failed := s.Snapshot.Status != nil && s.Snapshot.Status.Error != nil
	switch {
	case s.IsReadyToUse():
		state, health = "Ready", inspect.Good
	case failed:
		health = inspect.Bad
	}
	n := NodeOfObject(inspect.KindSnapshot, "", s.Snapshot, state, health)
	if failed && !s.IsReadyToUse() {
		n.Details = append(n.Details, "error: "+inspect.Plain(ptr.Deref(s.Snapshot.Status.Error.Message, "")))
	}
	if s.Content != nil {
		n.Details = append(n.Details, "VolumeSnapshotContent "+s.Content.Name)
		if id := snapshot.ContentPlacedIn(s.Content); id != "" {
			n.Details = append(n.Details, "in member "+f.NameOfMember(id, nil))
		}
	}
	n.Events = relevantEvents(s.Events, false, metav1.Time{})
	if s.IsReadyToUse() {
		n.Events = nil // they report what was wrong before
	}
	for i := range f.Claims {
		n.Children = append(n.Children, f.nodeOfClaim(&f.Claims[i]))
	}
	return n
}

// nodeOfMissingClaim returns the node for a claim that does not exist, with its remaining objects.
func (f builder) nodeOfMissingClaim(c *inspect.ClaimFacts) inspect.Node {
	n := inspect.Node{Kind: inspect.KindClaim, Namespace: c.Key.Namespace, Name: c.Key.Name, State: inspect.StateNotFound, Health: inspect.Bad}
	if f.couldNotRead(inspect.KindAndName(inspect.KindClaim, c.Key)) {
		n.State, n.Health = inspect.StateNotRead, inspect.Unknown
	}
	for i := range c.Earlier {
		left := inspect.ClaimFacts{Key: c.Key, Volume: &c.Earlier[i]}
		n.Children = append(n.Children, f.nodeOfVolume(&left))
	}
	return f.addPodsAndOrphans(n, c)
}

// addPodsAndOrphans adds the Pods that use a claim, and the orphaned volumes that were created for a claim
// of that name.
func (f builder) addPodsAndOrphans(n inspect.Node, c *inspect.ClaimFacts) inspect.Node {
	for _, o := range f.OrphansOf(c.Key) {
		since := o.Since
		n.Children = append(n.Children, inspect.Node{
			Kind: inspect.KindVolume, Name: o.Volume, Cluster: o.Registration, State: inspect.StateOrphaned, Health: inspect.Bad,
			Conditions: []inspect.Condition{{Type: v1alpha1.ConditionVolumesAccounted, Status: string(metav1.ConditionFalse), Reason: o.Reason, Since: since,
				Message: "the volume has no root, and Xylem does not destroy it. To use the volume again, re-create the claim with spec.volumeName " + o.Volume + ". Otherwise, delete the volume in the member"}},
		})
	}
	for i := range c.Pods {
		n.Children = append(n.Children, f.nodeOfPod(&c.Pods[i]))
	}
	return n
}

// couldNotRead reports whether something could not be read in the host.
func (f builder) couldNotRead(what string) bool {
	return slices.ContainsFunc(f.Missing, func(m inspect.Missing) bool { return m.What == what && m.Cluster == "" })
}

func describeOtherDriver(c *inspect.ClaimFacts) string {
	if c.Volume != nil {
		driver, _ := mirror.VolumeSourceOf(c.Volume)
		return fmt.Sprintf("not managed by Xylem, because its volume has driver %s", driver)
	}
	return fmt.Sprintf("not managed by Xylem, because its class has provisioner %s", c.Class.Provisioner)
}

func waitsForConsumer(class *storagev1.StorageClass) bool {
	return class != nil && hostpv.WaitsForConsumer(class) && !hostpv.IsPromiseClass(class)
}

// nodeOfVolume returns the node for a host PV, with the volume that it represents.
func (f builder) nodeOfVolume(c *inspect.ClaimFacts) inspect.Node {
	pv := c.Volume
	n := NodeOfObject(inspect.KindVolume, "", pv, PhaseOrUnknown(string(pv.Status.Phase)), volumeHealth(pv))
	n.Details = append(n.Details, volumeDetails(pv)...)
	n.Events = relevantEvents(c.VolumeEvents, false, sinceIfHealthy(&n, volumeHealthySince(pv)))
	_, _, _, hasLeaf := hostpv.LeafOfHostVolume(pv)
	if hostpv.IsPromise(pv) {
		kind := "promise"
		if hostpv.ReleasesWhenUnused(pv) {
			kind = "promise, released when unused"
		}
		switch {
		case !hasLeaf:
			n.Health = inspect.Waiting
			n.Details = append(n.Details, kind+", not fulfilled yet")
		default:
			n.Details = append(n.Details, kind+", fulfilled")
		}
	}
	for _, note := range []struct{ key, text string }{
		{v1alpha1.AnnotationConsumer, "for Pod %q"},
		{v1alpha1.AnnotationUnusedSince, "unused since %s"},
		{v1alpha1.AnnotationReleasing, "the disk (volume UID %s) is being destroyed, because no Pod uses the promise"},
		{v1alpha1.AnnotationAbandon, "abandoned (%s)"},
		{v1alpha1.AnnotationClusterGone, "member %q was deregistered"},
	} {
		if value := pv.Annotations[note.key]; value != "" {
			n.Details = append(n.Details, fmt.Sprintf(note.text, inspect.Plain(value)))
		}
	}
	n.Details = append(n.Details, f.sharingDetails(pv)...)
	if hostpv.IsReleasedOrFailed(pv) && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		n.Details = append(n.Details, "the data is kept. To let another claim use the volume, clear spec.claimRef")
	}
	if id := f.MemberOfClaim(c); id != "" {
		n.Children = append(n.Children, f.nodeOfMember(id, c))
	}
	return n
}

// sharingDetails describes the backend of a shared volume, and the other members that may have copies.
func (f builder) sharingDetails(pv *corev1.PersistentVolume) []string {
	backend := hostpv.BackendOfVolume(pv)
	if backend == "" {
		return nil
	}
	details := []string{fmt.Sprintf("shared on backend %q", backend)}
	for _, cluster := range hostpv.MembersWithCopies(pv) {
		name := cluster
		for i := range f.Registrations {
			if f.Registrations[i].Status.ClusterID == cluster {
				name = f.Registrations[i].Name
			}
		}
		details = append(details, "copy in member "+inspect.Plain(name))
	}
	return details
}

func volumeHealth(pv *corev1.PersistentVolume) inspect.Health {
	switch pv.Status.Phase {
	case corev1.VolumeBound:
		return inspect.Good
	case corev1.VolumeFailed:
		return inspect.Bad
	default:
		return inspect.Waiting
	}
}

func volumeDetails(pv *corev1.PersistentVolume) []string {
	var details []string
	if storage, ok := pv.Spec.Capacity[corev1.ResourceStorage]; ok {
		details = append(details, storage.String())
	}
	return append(details, "policy "+string(pv.Spec.PersistentVolumeReclaimPolicy))
}

// nodeOfMember returns the node for a member, with the claim's objects in it.
func (f builder) nodeOfMember(id string, c *inspect.ClaimFacts) inspect.Node {
	registration := f.Registration(id)
	var n inspect.Node
	if registration == nil {
		n = inspect.Node{Kind: inspect.KindRegistration, Name: f.NameOfMember(id, c.Volume), State: inspect.StateNotFound, Health: inspect.Bad, Details: []string{"no registration for cluster " + id}}
		if f.couldNotRead("ClusterRegistrations") {
			n.State, n.Health, n.Details = inspect.StateNotRead, inspect.Unknown, []string{"cluster " + id}
		}
	} else {
		n = registrationNode(registration)
	}
	n.Children = append(n.Children, f.nodesOfLeafClaim(n.Name, id, c)...)
	return n
}

func registrationNode(r *v1alpha1.ClusterRegistration) inspect.Node {
	state, health := v1alpha1.ConditionConnected, inspect.Good
	if !inspect.IsConnected(r) {
		state, health = "Disconnected", inspect.Bad
	}
	n := NodeOfObject(inspect.KindRegistration, "", r, state, health)
	if r.Status.KubernetesVersion != "" {
		n.Details = append(n.Details, inspect.Plain(r.Status.KubernetesVersion))
	}
	if len(r.Spec.Nodes) > 0 {
		n.Details = append(n.Details, fmt.Sprintf("nodes *.%s: %d", r.NodeName(), r.Status.Nodes))
	} else {
		n.Details = append(n.Details, "node "+r.NodeName())
	}
	n.Conditions = registrationConditions(r)
	if n.Health == inspect.Good && len(n.Conditions) > 0 {
		n.Health = inspect.Waiting
	}
	return n
}

// nodesOfLeafClaim returns the node for the leaf claim with its volume, as read from the member or
// recorded in the host.
func (f builder) nodesOfLeafClaim(cluster, id string, c *inspect.ClaimFacts) []inspect.Node {
	var leafName, leafUID string
	if c.Volume != nil {
		_, name, uid, _ := hostpv.LeafOfHostVolume(c.Volume)
		leafName, leafUID = name, string(uid)
	}
	n := inspect.Node{Kind: inspect.KindClaim, Namespace: c.Key.Namespace, Name: c.Key.Name, Cluster: cluster}
	switch {
	case c.Leaf != nil:
		n = nodeOfLeafClaim(cluster, c)
	case c.LeafKnown && c.Claim == nil:
		return f.nodesOfLeafVolume(cluster, leafName, leafUID, c)
	case c.LeafKnown:
		n.State, n.Health = inspect.StateNotFound, inspect.Waiting
	case leafName != "" && c.Claim != nil:
		n.State, n.Health = inspect.StateRecorded, inspect.Unknown
	case leafName != "":
		return f.nodesOfLeafVolume(cluster, leafName, leafUID, c)
	default:
		n.State, n.Health = inspect.StateNotRead, inspect.Unknown
		if c.Claim != nil && c.Claim.Annotations[v1alpha1.AnnotationPlacedIn] != id {
			n.Details = append(n.Details, "the claim is not placed in this member yet")
		}
	}
	n.Children = f.nodesOfLeafVolume(cluster, leafName, leafUID, c)
	return []inspect.Node{n}
}

// nodeOfLeafClaim returns the node for a leaf claim that was read.
func nodeOfLeafClaim(cluster string, c *inspect.ClaimFacts) inspect.Node {
	n := claimNodeWithState(cluster, c.Leaf)
	n.Events = relevantEvents(c.LeafEvents, false, sinceIfHealthy(&n, claimHealthySince(c.Leaf, c.LeafVolume)))
	if why := describeForeign(c.Leaf, c.Claim); why != "" {
		n.State, n.Health = inspect.StateForeign, inspect.Bad
		n.Details = append(n.Details, why)
	}
	return n
}

// describeForeign describes the owner of a member's object if the object is not the root's leaf.
func describeForeign(leaf, root client.Object) string {
	origin, ours := mirror.LeafOrigin(leaf)
	switch {
	case !ours:
		return "not created by Xylem, so Xylem does not change it"
	case isNilObject(root):
		return ""
	case origin.UID != root.GetUID():
		return fmt.Sprintf("created for an earlier object with this name (UID %s)", origin.UID)
	}
	return ""
}

func isNilObject(obj client.Object) bool {
	switch obj := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		return obj == nil
	case *corev1.Pod:
		return obj == nil
	}
	return obj == nil
}

// nodesOfLeafVolume returns the node for the real volume.
func (f builder) nodesOfLeafVolume(cluster, name, uid string, c *inspect.ClaimFacts) []inspect.Node {
	if pv := c.LeafVolume; pv != nil {
		n := NodeOfObject(inspect.KindVolume, cluster, pv, PhaseOrUnknown(string(pv.Status.Phase)), volumeHealth(pv))
		n.Details = append(n.Details, volumeDetails(pv)...)
		n.Driver, n.Handle = mirror.VolumeSourceOf(pv)
		n.Driver, n.Handle = inspect.Plain(n.Driver), inspect.Plain(n.Handle)
		n.Events = relevantEvents(c.LeafVolumeEvents, false, sinceIfHealthy(&n, volumeHealthySince(pv)))
		if uid != "" && string(pv.UID) != uid {
			n.Health = inspect.Bad
			n.Details = append(n.Details, "not the volume that the host's PersistentVolume represents, which has UID "+uid)
		}
		return []inspect.Node{n}
	}
	if name == "" {
		return nil
	}
	n := inspect.Node{Kind: inspect.KindVolume, Name: name, Cluster: cluster, State: inspect.StateRecorded, Health: inspect.Unknown}
	if c.LeafVolumeKnown {
		n.State, n.Health = inspect.StateNotFound, inspect.Bad
	}
	driver, handle := hostpv.RecordedSourceOf(c.Volume)
	n.Driver, n.Handle = inspect.Plain(driver), inspect.Plain(handle)
	return []inspect.Node{n}
}

// nodeOfPod returns the node for a host Pod, with its leaf.
func (f builder) nodeOfPod(p *inspect.PodFacts) inspect.Node {
	n := podNodeWithState("", p.Pod)
	n.Conditions = podConditions(p.Pod)
	if slices.ContainsFunc(n.Conditions, inspect.ReportsProblem) {
		n.Health = inspect.Bad
	}
	n.Events = eventsWithoutCondition(relevantEvents(p.Events, false, sinceIfHealthy(&n, podHealthySince(p.Pod))), n.Conditions)
	id := f.MemberOfPod(p)
	if id == "" {
		return n
	}
	cluster := f.NameOfMember(id, nil)
	leaf := inspect.Node{Kind: inspect.KindPod, Namespace: p.Pod.Namespace, Name: p.Pod.Name, Cluster: cluster, State: inspect.StateNotRead, Health: inspect.Unknown}
	switch {
	case p.Leaf != nil:
		leaf = podNodeWithState(cluster, p.Leaf)
		leaf.Conditions = podConditions(p.Leaf)
		leaf.Events = relevantEvents(p.LeafEvents, false, sinceIfHealthy(&leaf, podHealthySince(p.Leaf)))
		if why := describeForeign(p.Leaf, p.Pod); why != "" {
			leaf.State, leaf.Health = inspect.StateForeign, inspect.Bad
			leaf.Details = append(leaf.Details, why)
		}
	case p.LeafKnown:
		leaf.State, leaf.Health = inspect.StateNotFound, inspect.Waiting
		if podstatus.IsPodFinished(p.Pod) {
			leaf.Health = inspect.Good // deleted after its root terminated
		}
	case podstatus.PushedStatus(p.Pod) == corev1.ConditionTrue:
		leaf.State = inspect.StateRecorded
	}
	n.Children = append(n.Children, leaf)
	return n
}

func podNodeWithState(cluster string, pod *corev1.Pod) inspect.Node {
	var health inspect.Health
	switch pod.Status.Phase {
	case corev1.PodRunning, corev1.PodSucceeded:
		health = inspect.Good
	case corev1.PodFailed, corev1.PodUnknown:
		health = inspect.Bad
	default:
		health = inspect.Waiting
	}
	state := PhaseOrUnknown(string(pod.Status.Phase))
	if reason := podReason(pod); reason != "" {
		state = reason
		if health == inspect.Good {
			health = inspect.Bad
		}
	}
	n := NodeOfObject(inspect.KindPod, cluster, pod, state, health)
	if pod.Spec.NodeName != "" {
		n.Details = append(n.Details, "node "+pod.Spec.NodeName)
	} else if nominated := pod.Status.NominatedNodeName; nominated != "" {
		n.Details = append(n.Details, "about to be bound to node "+nominated)
	}
	return n
}

// podReason returns the status that `kubectl get` shows for a Pod, if it differs from the
// phase.
func podReason(pod *corev1.Pod) string {
	if pod.Status.Reason != "" {
		return inspect.Plain(pod.Status.Reason)
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range statuses {
			if w := s.State.Waiting; w != nil && w.Reason != "" {
				return inspect.Plain(w.Reason)
			}
		}
	}
	return ""
}

// claimNodeWithState returns the node for a root or leaf claim.
func claimNodeWithState(cluster string, claim *corev1.PersistentVolumeClaim) inspect.Node {
	health := map[corev1.PersistentVolumeClaimPhase]inspect.Health{corev1.ClaimBound: inspect.Good, corev1.ClaimPending: inspect.Waiting, corev1.ClaimLost: inspect.Bad}[claim.Status.Phase]
	n := NodeOfObject(inspect.KindClaim, cluster, claim, PhaseOrUnknown(string(claim.Status.Phase)), health)
	n.Details = append(n.Details, sizesOfClaim(claim)...)
	if class := hostpv.ClassNameOf(claim); class != "" {
		n.Details = append(n.Details, "class "+class)
	}
	n.Conditions = claimConditions(claim)
	return n
}

// sizesOfClaim returns the capacity of a claim, and the requested size if it differs.
func sizesOfClaim(claim *corev1.PersistentVolumeClaim) []string {
	asked := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has, ok := claim.Status.Capacity[corev1.ResourceStorage]
	switch {
	case !ok && asked.IsZero():
		return nil
	case !ok:
		return []string{asked.String() + " requested"}
	case has.Cmp(asked) < 0:
		return []string{fmt.Sprintf("%s, %s requested", has.String(), asked.String())}
	}
	return []string{has.String()}
}

// PhaseOrUnknown returns a phase as a State.
func PhaseOrUnknown(p string) string {
	if p == "" {
		return "Unknown"
	}
	return p
}
