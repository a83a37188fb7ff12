package tree

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// build makes the tree of what was read.
func build(f *facts) *Tree {
	t := &Tree{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}, Missing: f.missing}
	if f.pod != nil {
		t.Root = f.podNode(f.pod)
		for i := range f.claims {
			t.Root.Children = append(t.Root.Children, f.claimNode(&f.claims[i]))
		}
	} else {
		t.Root = f.claimNode(&f.claims[0])
	}
	for _, id := range f.clusterIDs() {
		if !f.members[id] {
			t.Recorded = append(t.Recorded, f.nameOf(id, f.volumeIn(id)))
		}
	}
	return t
}

func (f *facts) volumeIn(clusterID string) *corev1.PersistentVolume {
	for i := range f.claims {
		if f.memberOf(&f.claims[i]) == clusterID {
			return f.claims[i].volume
		}
	}
	return nil
}

// object is the node of an object that was read.
func object(kind, cluster string, obj client.Object, state string, health Health) Node {
	n := Node{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), Cluster: cluster, State: state, Health: health}
	if created := obj.GetCreationTimestamp(); !created.IsZero() {
		n.Created = &created
	}
	if obj.GetDeletionTimestamp() != nil {
		n.State, n.Health = StateTerminating, Waiting
		if finalizers := obj.GetFinalizers(); len(finalizers) > 0 {
			n.Details = append(n.Details, "held by "+strings.Join(finalizers, ", "))
		}
	}
	return n
}

// since is when the object got well, if it is well at all.
func (n *Node) since(well metav1.Time) metav1.Time {
	if n.Health != Good {
		return metav1.Time{}
	}
	return well
}

// claimNode is a claim of the host with all that it leads to.
func (f *facts) claimNode(c *claimFacts) Node {
	if c.claim == nil {
		return f.claimGone(c)
	}
	health := map[corev1.PersistentVolumeClaimPhase]Health{corev1.ClaimBound: Good, corev1.ClaimPending: Waiting, corev1.ClaimLost: Bad}[c.claim.Status.Phase]
	n := object(kindClaim, "", c.claim, phase(string(c.claim.Status.Phase)), health)
	n.Details = append(n.Details, sizes(c.claim)...)
	if class := mirror.ClassName(c.claim); class != "" {
		n.Details = append(n.Details, "class "+class)
	}
	n.Conditions = claimConditions(c.claim)
	if slices.ContainsFunc(n.Conditions, problem) {
		n.Health = Bad
	}
	n.Events = matter(c.events, c.claim.Status.Phase != corev1.ClaimBound, n.since(claimWell(c.claim, c.volume)))
	if !c.ours() {
		n.Details = append(n.Details, notOurs(c))
		return f.withPods(n, c)
	}
	if c.claim.Status.Phase == corev1.ClaimPending && len(c.pods) == 0 && f.pod == nil && waitsForConsumer(c.class) {
		n.Details = append(n.Details, "no Pod uses it yet, and its class waits for the first one")
	}
	switch id := f.memberOf(c); {
	case c.volume != nil:
		n.Children = append(n.Children, f.volumeNode(c))
	case c.claim.Spec.VolumeName != "" && !f.missed(kindVolume+" "+c.claim.Spec.VolumeName):
		n.Children = append(n.Children, Node{Kind: kindVolume, Name: c.claim.Spec.VolumeName, State: StateNotFound, Health: Bad})
	case id != "":
		n.Children = append(n.Children, f.memberNode(id, c))
	}
	return f.withPods(n, c)
}

// claimGone is a claim that is not there, and what is left of it.
func (f *facts) claimGone(c *claimFacts) Node {
	n := Node{Kind: kindClaim, Namespace: c.key.Namespace, Name: c.key.Name, State: StateNotFound, Health: Bad}
	if f.missed(named(kindClaim, c.key)) {
		n.State, n.Health = StateNotRead, Unknown
	}
	for i := range c.earlier {
		left := claimFacts{key: c.key, volume: &c.earlier[i]}
		n.Children = append(n.Children, f.volumeNode(&left))
	}
	return f.withPods(n, c)
}

// withPods adds the volumes without a root that were made for a claim of that name,
// and the Pods that use it.
func (f *facts) withPods(n Node, c *claimFacts) Node {
	for _, o := range f.orphansOf(c.key) {
		since := o.Since
		n.Children = append(n.Children, Node{
			Kind: kindVolume, Name: o.Volume, Cluster: o.registration, State: StateOrphaned, Health: Bad,
			Conditions: []Condition{{Type: v1alpha1.ConditionVolumesAccounted, Status: string(metav1.ConditionFalse), Reason: o.Reason, Since: since,
				Message: "nothing destroys it: make the claim anew with spec.volumeName " + o.Volume + " to use it again, or delete it in the member"}},
		})
	}
	for i := range c.pods {
		n.Children = append(n.Children, f.podNode(&c.pods[i]))
	}
	return n
}

// missed reports whether something could not be read in the host.
func (f *facts) missed(what string) bool {
	return slices.ContainsFunc(f.missing, func(m Missing) bool { return m.What == what && m.Cluster == "" })
}

func notOurs(c *claimFacts) string {
	if c.volume != nil {
		driver, _ := mirror.SourceOf(c.volume)
		return fmt.Sprintf("not Xylem's: its volume is of driver %s", driver)
	}
	return fmt.Sprintf("not Xylem's: its class has provisioner %s", c.class.Provisioner)
}

func waitsForConsumer(class *storagev1.StorageClass) bool {
	return class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer && !mirror.Promises(class)
}

// volumeNode is a PV of the host and what it stands for.
func (f *facts) volumeNode(c *claimFacts) Node {
	pv := c.volume
	n := object(kindVolume, "", pv, phase(string(pv.Status.Phase)), volumeHealth(pv))
	n.Details = append(n.Details, volumeDetails(pv)...)
	n.Events = matter(c.volumeEvents, false, n.since(volumeWell(pv)))
	_, _, _, hasLeaf := mirror.LeafVolumeOf(pv)
	if mirror.IsPromise(pv) {
		kind := "promise"
		if mirror.WhenUnused(pv) {
			kind = "promise for as long as Pods use it"
		}
		switch {
		case !hasLeaf:
			n.Health = Waiting
			n.Details = append(n.Details, kind+", not fulfilled yet")
		default:
			n.Details = append(n.Details, kind+", fulfilled")
		}
	}
	for _, note := range []struct{ key, text string }{
		{v1alpha1.AnnotationConsumer, "made for Pod %s"},
		{v1alpha1.AnnotationUnusedSince, "unused since %s"},
		{v1alpha1.AnnotationReleasing, "its disk %s is being destroyed, since no Pod uses it"},
		{v1alpha1.AnnotationAbandon, "abandoned (%s)"},
		{v1alpha1.AnnotationClusterGone, "its member, %s, was deregistered"},
	} {
		if value := pv.Annotations[note.key]; value != "" {
			n.Details = append(n.Details, fmt.Sprintf(note.text, plain(value)))
		}
	}
	if mirror.Ended(pv) && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		n.Details = append(n.Details, "its data are kept: clear spec.claimRef to let another claim have them")
	}
	if id := f.memberOf(c); id != "" {
		n.Children = append(n.Children, f.memberNode(id, c))
	}
	return n
}

func volumeHealth(pv *corev1.PersistentVolume) Health {
	switch pv.Status.Phase {
	case corev1.VolumeBound:
		return Good
	case corev1.VolumeFailed:
		return Bad
	default:
		return Waiting
	}
}

func volumeDetails(pv *corev1.PersistentVolume) []string {
	var details []string
	if storage, ok := pv.Spec.Capacity[corev1.ResourceStorage]; ok {
		details = append(details, storage.String())
	}
	return append(details, "policy "+string(pv.Spec.PersistentVolumeReclaimPolicy))
}

// memberNode is a member and what a claim has there.
func (f *facts) memberNode(id string, c *claimFacts) Node {
	registration := f.registration(id)
	var n Node
	if registration == nil {
		n = Node{Kind: kindRegistration, Name: f.nameOf(id, c.volume), State: StateNotFound, Health: Bad, Details: []string{"no registration has cluster " + id}}
		if f.missed("ClusterRegistrations") {
			n.State, n.Health, n.Details = StateNotRead, Unknown, []string{"cluster " + id}
		}
	} else {
		n = registrationNode(registration)
	}
	n.Children = append(n.Children, f.leafClaimNode(n.Name, id, c)...)
	return n
}

func registrationNode(r *v1alpha1.ClusterRegistration) Node {
	state, health := v1alpha1.ConditionConnected, Good
	if !connected(r) {
		state, health = "Disconnected", Bad
	}
	n := object(kindRegistration, "", r, state, health)
	if r.Status.KubernetesVersion != "" {
		n.Details = append(n.Details, plain(r.Status.KubernetesVersion))
	}
	n.Details = append(n.Details, "node "+r.NodeName())
	n.Conditions = registrationConditions(r)
	if n.Health == Good && len(n.Conditions) > 0 {
		n.Health = Waiting
	}
	return n
}

// leafClaimNode is what a claim has in its member: the leaf claim with its volume,
// or what the host has recorded of them.
func (f *facts) leafClaimNode(cluster, id string, c *claimFacts) []Node {
	var leafName, leafUID string
	if c.volume != nil {
		_, name, uid, _ := mirror.LeafVolumeOf(c.volume)
		leafName, leafUID = name, string(uid)
	}
	n := Node{Kind: kindClaim, Namespace: c.key.Namespace, Name: c.key.Name, Cluster: cluster}
	switch {
	case c.leaf != nil:
		n = leafClaim(cluster, c)
	case c.leafKnown && c.claim == nil:
		return f.leafVolumeNode(cluster, leafName, leafUID, c)
	case c.leafKnown:
		n.State, n.Health = StateNotFound, Waiting
	case leafName != "" && c.claim != nil:
		n.State, n.Health = StateRecorded, Unknown
	case leafName != "":
		return f.leafVolumeNode(cluster, leafName, leafUID, c)
	default:
		n.State, n.Health = StateNotRead, Unknown
		if c.claim.Annotations[v1alpha1.AnnotationPlacedIn] != id {
			n.Details = append(n.Details, "the claim is not placed there yet")
		}
	}
	n.Children = f.leafVolumeNode(cluster, leafName, leafUID, c)
	return []Node{n}
}

// leafClaim is a claim of a member that was read.
func leafClaim(cluster string, c *claimFacts) Node {
	health := map[corev1.PersistentVolumeClaimPhase]Health{corev1.ClaimBound: Good, corev1.ClaimPending: Waiting, corev1.ClaimLost: Bad}[c.leaf.Status.Phase]
	n := object(kindClaim, cluster, c.leaf, phase(string(c.leaf.Status.Phase)), health)
	n.Details = append(n.Details, sizes(c.leaf)...)
	if class := mirror.ClassName(c.leaf); class != "" {
		n.Details = append(n.Details, "class "+class)
	}
	n.Conditions = claimConditions(c.leaf)
	n.Events = matter(c.leafEvents, false, n.since(claimWell(c.leaf, c.leafVolume)))
	if why := foreign(c.leaf, c.claim); why != "" {
		n.State, n.Health = StateForeign, Bad
		n.Details = append(n.Details, why)
	}
	return n
}

// foreign says whose leaf an object of the member is, if it is not that of a root.
func foreign(leaf, root client.Object) string {
	origin, ours := mirror.OriginOf(leaf)
	switch {
	case !ours:
		return "the member's own: Xylem leaves it alone"
	case isNil(root):
		return ""
	case origin.UID != root.GetUID():
		return "made for an earlier object of this name, UID " + string(origin.UID)
	}
	return ""
}

func isNil(obj client.Object) bool {
	switch obj := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		return obj == nil
	case *corev1.Pod:
		return obj == nil
	}
	return obj == nil
}

// leafVolumeNode is the real volume.
func (f *facts) leafVolumeNode(cluster, name, uid string, c *claimFacts) []Node {
	if pv := c.leafVolume; pv != nil {
		n := object(kindVolume, cluster, pv, phase(string(pv.Status.Phase)), volumeHealth(pv))
		n.Details = append(n.Details, volumeDetails(pv)...)
		n.Driver, n.Handle = mirror.SourceOf(pv)
		n.Driver, n.Handle = plain(n.Driver), plain(n.Handle)
		n.Events = matter(c.leafVolumeEvents, false, n.since(volumeWell(pv)))
		if uid != "" && string(pv.UID) != uid {
			n.Health = Bad
			n.Details = append(n.Details, "another volume of that name: the host stands for the one with UID "+uid)
		}
		return []Node{n}
	}
	if name == "" {
		return nil
	}
	n := Node{Kind: kindVolume, Name: name, Cluster: cluster, State: StateRecorded, Health: Unknown}
	if c.leafVolumeKnown {
		n.State, n.Health = StateNotFound, Bad
	}
	record := c.volume.Annotations
	if c.volume.Spec.CSI.Driver == v1alpha1.ProvisionerName {
		record = c.volume.Spec.CSI.VolumeAttributes
	}
	n.Driver, n.Handle = plain(record[v1alpha1.AttributeDriver]), plain(record[v1alpha1.AttributeHandle])
	return []Node{n}
}

// podNode is a Pod of the host with its leaf.
func (f *facts) podNode(p *podFacts) Node {
	n := podOf("", p.pod)
	n.Conditions = podConditions(p.pod)
	if slices.ContainsFunc(n.Conditions, problem) {
		n.Health = Bad
	}
	n.Events = matter(p.events, false, n.since(podWell(p.pod)))
	id := f.memberOfPod(p)
	if id == "" {
		return n
	}
	cluster := f.nameOf(id, nil)
	leaf := Node{Kind: kindPod, Namespace: p.pod.Namespace, Name: p.pod.Name, Cluster: cluster, State: StateNotRead, Health: Unknown}
	switch {
	case p.leaf != nil:
		leaf = podOf(cluster, p.leaf)
		leaf.Conditions = podConditions(p.leaf)
		leaf.Events = matter(p.leafEvents, false, leaf.since(podWell(p.leaf)))
		if why := foreign(p.leaf, p.pod); why != "" {
			leaf.State, leaf.Health = StateForeign, Bad
			leaf.Details = append(leaf.Details, why)
		}
	case p.leafKnown:
		leaf.State, leaf.Health = StateNotFound, Waiting
		if mirror.Finished(p.pod) {
			leaf.Health = Good // taken back with its root's end
		}
	case pushed(p.pod):
		leaf.State = StateRecorded
	}
	n.Children = append(n.Children, leaf)
	return n
}

func podOf(cluster string, pod *corev1.Pod) Node {
	var health Health
	switch pod.Status.Phase {
	case corev1.PodRunning, corev1.PodSucceeded:
		health = Good
	case corev1.PodFailed, corev1.PodUnknown:
		health = Bad
	default:
		health = Waiting
	}
	state := phase(string(pod.Status.Phase))
	if reason := podReason(pod); reason != "" {
		state = reason
		if health == Good {
			health = Bad
		}
	}
	n := object(kindPod, cluster, pod, state, health)
	if pod.Spec.NodeName != "" {
		n.Details = append(n.Details, "node "+pod.Spec.NodeName)
	} else if nominated := pod.Status.NominatedNodeName; nominated != "" {
		n.Details = append(n.Details, "about to be bound to node "+nominated)
	}
	return n
}

// podReason is why a Pod is not simply in its phase, as kubectl get shows it.
func podReason(pod *corev1.Pod) string {
	if pod.Status.Reason != "" {
		return plain(pod.Status.Reason)
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range statuses {
			if w := s.State.Waiting; w != nil && w.Reason != "" {
				return plain(w.Reason)
			}
		}
	}
	return ""
}

// sizes of a claim: what it has, and what it asks for if that is another.
func sizes(claim *corev1.PersistentVolumeClaim) []string {
	asked := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has, ok := claim.Status.Capacity[corev1.ResourceStorage]
	switch {
	case !ok && asked.IsZero():
		return nil
	case !ok:
		return []string{asked.String() + " asked for"}
	case has.Cmp(asked) < 0:
		return []string{fmt.Sprintf("%s, %s asked for", has.String(), asked.String())}
	}
	return []string{has.String()}
}

func phase(p string) string {
	if p == "" {
		return "Unknown"
	}
	return p
}
