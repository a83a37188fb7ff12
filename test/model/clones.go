package model

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
)

// copyOf is an annotation on leaf PVs with a cloned disk. Its value is the UID of the root whose
// data was copied.
const copyOf = "model/copy-of"

// clones reports whether a claim is cloned from the first claim.
func (m *Model) clones(c int) bool { return c == 1 && m.bounds.Clones }

// newRoot returns a claim like one that a user creates.
func (m *Model) newRoot(c int, uid types.UID) *corev1.PersistentVolumeClaim {
	root := newRoot(claimNames[c], uid)
	if m.clones(c) {
		root.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: claimNames[0]}
	}
	return root
}

// sourceOf returns the data source of a root claim.
func (m *Model) sourceOf(w world, root *corev1.PersistentVolumeClaim) *placement.CopySource {
	s := &placement.CopySource{Claim: m.objects.claim(w.roots[0])}
	s.Of, _ = mirror.DataSourceOf(root)
	if s.Claim == nil {
		return s
	}
	if s.Claim.Spec.VolumeName == elsewhereNames[0] {
		s.Volume = elsewhere(s.Claim)
	} else if n := slices.Index(hostNames[:], s.Claim.Spec.VolumeName); n >= 0 {
		s.Volume = m.objects.pv(w.hostState.pvs[n])
	}
	return s
}

// source makes the only write of the controller "source". A Pod that uses the claim is nominated
// immediately.
func (ms *moves) source(c int) {
	m := ms.model
	root := m.objects.claim(ms.from.roots[c])
	if !m.clones(c) || root == nil || root.DeletionTimestamp != nil || root.Spec.VolumeName != "" || root.Annotations[v1alpha1.AnnotationPlacedIn] != "" {
		return
	}
	at := m.sourceOf(ms.from, root).Locate(root)
	if at.ClusterID == "" {
		return
	}
	record := func(root *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&root.ObjectMeta, v1alpha1.AnnotationSource, at.AnnotationValue())
	}
	if ms.from.mode != mirrors {
		if hostpv.PromiseRefusal(root, hostClass(ms.from.hostPolicy.reclaim(), ms.from.mode)) == nil {
			ms.add("source: records the source of a promise", func(to *world) { to.roots[c] = m.objects.changeClaim(to.roots[c], record) })
		}
		return
	}
	node := here.NodeName
	if at.ClusterID != here.ClusterID {
		node = there.NodeName
	}
	ms.add("source: selects the member that has the source", func(to *world) {
		m.selectNode(to, c, node)
		to.roots[c] = m.objects.changeClaim(to.roots[c], record)
	})
}

// contentFor returns the UID of the root whose data the provisioner copies for a leaf claim: the
// root of the leaf claim that has the source's name at that time. Without a data source, it is
// empty.
func (m *Model) contentFor(w world, claim *corev1.PersistentVolumeClaim) (data types.UID, ready bool) {
	if claim.Spec.DataSource == nil {
		return "", true
	}
	from := m.objects.claim(w.claims[slices.Index(claimNames[:], claim.Spec.DataSource.Name)])
	if from == nil || from.Status.Phase != corev1.ClaimBound || from.DeletionTimestamp != nil || m.leafNamed(w, from.Spec.VolumeName) == nil {
		return "", false
	}
	origin, _ := mirror.LeafOriginFromHost(here.HostID, from)
	return origin.UID, true
}

// otherData returns why the disk of a claim with a data source is wrong: it is empty, or a copy of
// another claim that now has the source's name.
func (m *Model) otherData(w world, root *corev1.PersistentVolumeClaim, made *corev1.PersistentVolume) []string {
	if root.Spec.VolumeName != "" || !mirror.HasDataSource(root) {
		return nil
	}
	record, _ := mirror.DataSourceRecordOf(root)
	_, name, _, _ := hostpv.LeafOfHostVolume(made)
	leaf := m.leafNamed(w, name)
	if leaf == nil {
		return nil // leaf_pv's cache lags, and the claim's volume is already gone
	}
	switch data := leaf.Annotations[copyOf]; {
	case data == "":
		return []string{"a claim with a data source gets an empty disk"}
	case record.UID != "" && data != string(record.UID):
		return []string{"a claim gets a copy of data that is not its source's"}
	}
	return nil
}
