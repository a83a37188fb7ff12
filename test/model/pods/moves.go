package pods

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
)

// move is a transition to another world.
type move struct {
	name string
	to   world
}

// moves collects the moves that change a world.
type moves struct {
	model *Model
	from  world
	made  []move
}

func (ms *moves) add(name string, edit func(*world)) {
	to := ms.from
	if edit(&to); to != ms.from {
		ms.made = append(ms.made, move{name, to})
	}
}

func (ms *moves) pod(name string, k kind, edit func(*corev1.Pod)) {
	ms.add(name, func(to *world) { change(ms.model, to, k, edit) })
}

func (ms *moves) claim(name string, k kind, edit func(*corev1.PersistentVolumeClaim)) {
	ms.add(name, func(to *world) { change(ms.model, to, k, edit) })
}

func selects(node string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, volumehelpers.AnnSelectedNode, node)
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, volumehelpers.AnnStorageProvisioner, v1alpha1.ProvisionerName)
	}
}

// kubernetes returns the moves of Kubernetes, and of Xylem's other controllers. If a move stays possible,
// it happens eventually.
func (m *Model) kubernetes(w world) []move {
	ms := &moves{model: m, from: w}
	pod, hasPod := get[*corev1.Pod](m, w.state, root)
	c, hasClaim := get[*corev1.PersistentVolumeClaim](m, w.state, claim)
	if hasPod {
		ms.host(pod, c, hasClaim)
		ms.leafPod(pod)
	}
	if hasClaim {
		ms.volume(c, hasPod)
	}
	ms.member()
	if w.lagging != none {
		ms.add("the cache catches up", func(to *world) { to.lagging, to.stale = none, 0 })
	}
	return ms.made
}

// host makes the moves of the host's scheduler and API server for the Pod.
func (ms *moves) host(pod *corev1.Pod, c *corev1.PersistentVolumeClaim, hasClaim bool) {
	unbound := pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !podstatus.IsPodFinished(pod)
	switch {
	case pod.DeletionTimestamp != nil && pod.Spec.NodeName == "":
		ms.add("host: the API server removes the Pod", func(to *world) { to.state[root] = 0 })
	case unbound && hasClaim && c.DeletionTimestamp == nil && c.Spec.VolumeName == "" && c.Annotations[volumehelpers.AnnSelectedNode] == "":
		ms.add("host: the scheduler nominates this member, and selects its node for the claim", func(to *world) {
			change(ms.model, to, claim, selects(here.NodeName))
			change(ms.model, to, root, func(pod *corev1.Pod) { pod.Status.NominatedNodeName = here.NodeName })
		})
	case unbound && hasClaim && c.Spec.VolumeName == volume:
		ms.pod("host: the scheduler binds the Pod", root, func(pod *corev1.Pod) {
			pod.Spec.NodeName, pod.Status.NominatedNodeName = here.NodeName, ""
		})
	}
}

// leafPod makes the moves of leaf_pod: it mirrors the leaf's phase, and ends a root that is bound here and
// whose leaf is gone.
func (ms *moves) leafPod(pod *corev1.Pod) {
	if pod.Spec.NodeName != here.NodeName || podstatus.IsPodFinished(pod) {
		return
	}
	there, has := get[*corev1.Pod](ms.model, ms.from.state, leaf)
	mine := has && there.Annotations[v1alpha1.AnnotationRootUID] == string(pod.UID)
	switch {
	case mine && there.Status.Phase != pod.Status.Phase && there.DeletionTimestamp == nil:
		ms.pod("leaf_pod: mirrors the phase", root, func(root *corev1.Pod) { root.Status.Phase = there.Status.Phase })
	case !mine && (podstatus.HadLeafPod(pod) || pod.DeletionTimestamp != nil):
		ms.pod("leaf_pod: ends the Pod, whose leaf is gone", root, func(root *corev1.Pod) { root.Status.Phase = corev1.PodFailed })
	}
}

// volume makes the moves of root_pvc, leaf_pv and the host's PV controller.
func (ms *moves) volume(c *corev1.PersistentVolumeClaim, hasPod bool) { //nolint:gocyclo // a table
	m, w := ms.model, ms.from
	lc, hasLeaf := get[*corev1.PersistentVolumeClaim](m, w.state, leafClaim)
	mine := hasLeaf && lc.Annotations[v1alpha1.AnnotationRootUID] == string(c.UID)
	selected, placed := c.Annotations[volumehelpers.AnnSelectedNode], c.Annotations[v1alpha1.AnnotationPlacedIn]
	switch {
	case c.DeletionTimestamp != nil && !hasPod:
		ms.add("host: the claim is removed", func(to *world) { to.state[claim], to.state[hostVolume] = 0, 0 })
	case c.DeletionTimestamp != nil:
	case c.Spec.VolumeName == "" && selected == here.NodeName && placed == "":
		ms.claim("root_pvc: places the claim", claim, func(c *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationPlacedIn, here.ClusterID)
		})
	case placed == here.ClusterID && !hasLeaf && (c.Spec.VolumeName != "" || selected == here.NodeName):
		ms.add("root_pvc: creates the leaf claim", func(to *world) {
			made, err := pvc.TranslateClaim(c, ptr.To(class), here)
			if err != nil {
				panic(err)
			}
			made.UID, made.Spec.VolumeName, made.Status.Phase = "leaf-claim-of-"+c.UID, c.Spec.VolumeName, c.Status.Phase
			to.state[leafClaim] = m.objects.keep(made)
		})
	case placed == here.ClusterID && c.Spec.VolumeName == "" && selected != here.NodeName && mine && lc.Spec.VolumeName == "":
		ms.add("root_pvc: withdraws the leaf claim", func(to *world) { to.state[leafClaim] = 0 })
	case placed == here.ClusterID && c.Spec.VolumeName == "" && selected != here.NodeName && !mine && w.state[hostVolume] == 0:
		ms.claim("root_pvc: removes the placement", claim, func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, v1alpha1.AnnotationPlacedIn) })
	case mine && lc.Spec.VolumeName != "" && c.Spec.VolumeName == "" && placed == here.ClusterID && w.state[hostVolume] == 0:
		ms.add("leaf_pv: mirrors the volume", func(to *world) { to.state[hostVolume] = m.objects.keep(newHostVolume(c)) })
	case c.Spec.VolumeName == "" && w.state[hostVolume] != 0:
		ms.claim("host: the PV controller binds the claim", claim, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeName, c.Status.Phase = volume, corev1.ClaimBound
		})
	}
}

// member makes the moves of the member's Kubernetes.
func (ms *moves) member() {
	m, w := ms.model, ms.from
	there, hasLeaf := get[*corev1.Pod](m, w.state, leaf)
	lc, hasClaim := get[*corev1.PersistentVolumeClaim](m, w.state, leafClaim)
	if hasClaim {
		_, hasRoot := get[*corev1.PersistentVolumeClaim](m, w.state, claim)
		switch {
		case !hasRoot:
			ms.add("root_pvc: the leaf claim is removed", func(to *world) { to.state[leafClaim] = 0 })
		case lc.Spec.VolumeName == "" && (!w.waits || hasLeaf && there.DeletionTimestamp == nil || ms.unconsumed()):
			ms.claim("member: the leaf claim is bound", leafClaim, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName, c.Status.Phase = volume, corev1.ClaimBound })
		}
	}
	switch {
	case !hasLeaf:
	case there.DeletionTimestamp != nil:
		ms.add("member: the leaf is removed", func(to *world) { to.state[leaf] = 0 })
	case there.Status.Phase == "" || there.Status.Phase == corev1.PodPending:
		if hasClaim && lc.Spec.VolumeName != "" {
			ms.add("member: the leaf's containers start", func(to *world) {
				change(m, to, leaf, func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.Phase = "worker", corev1.PodRunning })
				to.started, to.recorded = started(there), false
			})
		}
	}
}

// importer is the annotation of a claim whose node an importer selected.
const importer = "importer"

// unconsumed reports whether root_pvc selects the member's node for the leaf claim, because an importer selected
// the claim's, and the host's scheduler has no Pod to place.
func (ms *moves) unconsumed() bool {
	c, hasClaim := get[*corev1.PersistentVolumeClaim](ms.model, ms.from.state, claim)
	pod, there := get[*corev1.Pod](ms.model, ms.from.state, root)
	return hasClaim && c.Annotations[importer] != "" && (!there || pod.Spec.NodeName != "" || podstatus.IsPodFinished(pod))
}

// started returns the index of a leaf's root in rootUIDs, plus 1.
func started(leaf *corev1.Pod) uint8 {
	for i, uid := range rootUIDs {
		if types.UID(leaf.Annotations[v1alpha1.AnnotationRootUID]) == uid {
			return uint8(i + 1)
		}
	}
	return 0
}

// disruptions returns what users, admins and failures can do. Each counts against the world's budget.
func (m *Model) disruptions(w world) []move { //nolint:gocyclo // a table
	if w.budget == 0 {
		return nil
	}
	w.budget--
	ms := &moves{model: m, from: w}
	pod, hasPod := get[*corev1.Pod](m, w.state, root)
	c, hasClaim := get[*corev1.PersistentVolumeClaim](m, w.state, claim)
	there, hasLeaf := get[*corev1.Pod](m, w.state, leaf)
	lc, hasLeafClaim := get[*corev1.PersistentVolumeClaim](m, w.state, leafClaim)
	switch {
	case !hasPod:
		ms.add("a user creates the Pod again", func(to *world) {
			if uid := m.unused(*to, rootUIDs); uid != "" {
				to.state[root] = m.objects.keep(newPod(uid))
			}
		})
	case pod.DeletionTimestamp == nil:
		ms.pod("a user deletes the Pod", root, func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &deleted, ptr.To(int64(30))
		})
	}
	switch {
	case !hasClaim:
		ms.add("a user creates the claim again", func(to *world) {
			if uid := m.unused(*to, claimUIDs); uid != "" {
				to.state[claim] = m.objects.keep(newClaim(uid))
			}
		})
	case c.DeletionTimestamp == nil:
		ms.claim("a user deletes the claim", claim, func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &deleted })
		if c.Spec.VolumeName == "" && hasPod && pod.Spec.NodeName == "" {
			ms.add("the scheduler chooses another member", func(to *world) {
				change(m, to, claim, selects(other.NodeName))
				change(m, to, root, func(pod *corev1.Pod) { pod.Status.NominatedNodeName = other.NodeName })
			})
		}
		if c.Spec.VolumeName == "" && c.Annotations[volumehelpers.AnnSelectedNode] == "" && (!hasPod || pod.Spec.NodeName != "") {
			ms.claim("an importer selects this member's node for the claim", claim, func(c *corev1.PersistentVolumeClaim) {
				selects(here.NodeName)(c)
				metav1.SetMetaDataAnnotation(&c.ObjectMeta, importer, "true")
			})
		}
	}
	if hasLeaf && there.DeletionTimestamp == nil {
		ms.pod("the member's admin deletes the leaf", leaf, func(pod *corev1.Pod) { pod.DeletionTimestamp = &deleted })
		if there.Status.Phase == corev1.PodRunning {
			ms.pod("the leaf completes", leaf, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
		}
	}
	if hasLeafClaim && lc.DeletionTimestamp == nil && !hasLeaf && (lc.Spec.VolumeName == "" || w.state[hostVolume] != 0) {
		ms.add("the member's admin deletes the leaf claim", func(to *world) { to.state[leafClaim] = 0 })
	}
	for k := root; k < kinds && w.lagging == none; k++ {
		ms.add("a cache becomes stale: "+k.String(), func(to *world) { to.lagging, to.stale = k, to.state[k] })
	}
	return ms.made
}
