package hostpv

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// sharedAttributesLimit is the maximum size in bytes of a shared volume's CSI attributes.
const sharedAttributesLimit = 4 << 10

// provisionerIdentity is the attribute with which external-provisioner records which of its
// processes created a volume. Share omits it, because drivers do not use it and a copy has no
// provisioner.
const provisionerIdentity = "storage.kubernetes.io/csiProvisionerIdentity"

// AreAccessModesSharable reports whether Pods in several clusters may use a volume with these access modes at the
// same time. The other modes rely on one cluster's VolumeAttachments to keep a second node out.
func AreAccessModesSharable(modes []corev1.PersistentVolumeAccessMode) bool {
	return len(modes) > 0 && !slices.ContainsFunc(modes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m != corev1.ReadWriteMany && m != corev1.ReadOnlyMany
	})
}

// ShareVolume makes the host PV that TranslateVolume returned reachable from all members that share a backend. The
// host PV then records everything that a copy of the leaf PV needs, because the member that has the
// leaf PV may be away when another member needs a copy. Share returns false, and changes nothing, if
// the volume cannot be shared: its access modes do not allow it, it has attributes that only a kubelet may
// set, or the host PV cannot record its source exactly.
func ShareVolume(host, leaf *corev1.PersistentVolume, backend string) bool {
	csi := leaf.Spec.CSI
	if backend == "" || csi == nil || !AreAccessModesSharable(leaf.Spec.AccessModes) || hasKubeletAttributes(csi.VolumeAttributes) ||
		host.Spec.CSI.VolumeAttributes[v1alpha1.AttributeDriver] != csi.Driver || host.Spec.CSI.VolumeAttributes[v1alpha1.AttributeHandle] != csi.VolumeHandle {
		return false
	}
	recorded := maps.Clone(csi.VolumeAttributes)
	delete(recorded, provisionerIdentity)
	attributes, err := json.Marshal(recorded)
	if err != nil || len(attributes) > sharedAttributesLimit || bytes.ContainsFunc(attributes, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return false
	}
	host.Spec.CSI.VolumeAttributes[v1alpha1.AttributeShared] = string(attributes)
	// The terms are alternatives, so the volume's own member stays reachable even if its
	// registration no longer names the backend.
	cluster, _, _ := strings.Cut(host.Spec.CSI.VolumeHandle, "/")
	host.Spec.NodeAffinity = mirror.NodeAffinityToMember(cluster)
	terms := &host.Spec.NodeAffinity.Required.NodeSelectorTerms
	*terms = append(*terms, mirror.NodeSelectorTermForLabel(v1alpha1.LabelBackendPrefix+backend, ""))
	return true
}

// BackendOfVolume returns the backend of the shared volume that a host PV represents, or "". The API
// server does not allow changes of a PV's node affinity and source.
func BackendOfVolume(host *corev1.PersistentVolume) string {
	csi, a := host.Spec.CSI, host.Spec.NodeAffinity
	if csi == nil || csi.Driver != v1alpha1.ProvisionerName || csi.VolumeAttributes[v1alpha1.AttributeShared] == "" ||
		a == nil || a.Required == nil || len(a.Required.NodeSelectorTerms) != 2 {
		return ""
	}
	own, shared := a.Required.NodeSelectorTerms[0], a.Required.NodeSelectorTerms[1]
	cluster, _, _ := strings.Cut(csi.VolumeHandle, "/")
	if len(shared.MatchExpressions) != 1 || !mirror.IsNodeSelectorTermForLabel(own, v1alpha1.LabelClusterID, cluster) {
		return ""
	}
	label := shared.MatchExpressions[0].Key
	backend, found := strings.CutPrefix(label, v1alpha1.LabelBackendPrefix)
	if !found || !mirror.IsNodeSelectorTermForLabel(shared, label, "") {
		return ""
	}
	return backend
}

// SharedVolumeSource returns the CSI source of the leaf PV that a shared volume's host PV represents,
// without Secrets. It returns false for other PVs.
func SharedVolumeSource(host *corev1.PersistentVolume) (*corev1.CSIPersistentVolumeSource, bool) {
	if BackendOfVolume(host) == "" {
		return nil, false
	}
	from := host.Spec.CSI
	source := &corev1.CSIPersistentVolumeSource{
		Driver:       from.VolumeAttributes[v1alpha1.AttributeDriver],
		VolumeHandle: from.VolumeAttributes[v1alpha1.AttributeHandle],
		ReadOnly:     from.ReadOnly,
		FSType:       from.FSType,
	}
	err := json.Unmarshal([]byte(from.VolumeAttributes[v1alpha1.AttributeShared]), &source.VolumeAttributes)
	return source, err == nil && source.Driver != "" && source.VolumeHandle != "" && !hasKubeletAttributes(source.VolumeAttributes)
}

// hasKubeletAttributes reports whether a volume has attributes that only a kubelet may set. Drivers trust them, and some
// ignore the case of their keys.
func hasKubeletAttributes(attributes map[string]string) bool {
	for key := range attributes {
		key = strings.ToLower(key)
		if key == "csi.storage.k8s.io/ephemeral" || strings.HasPrefix(key, "csi.storage.k8s.io/pod.") || strings.HasPrefix(key, "csi.storage.k8s.io/serviceaccount.") {
			return true
		}
	}
	return false
}

// MembersWithCopies returns the cluster IDs of the members that have, or may have, a copy of the shared
// volume that a host PV represents.
func MembersWithCopies(host *corev1.PersistentVolume) []string {
	var clusters []string
	for _, finalizer := range host.Finalizers {
		if cluster, found := strings.CutPrefix(finalizer, v1alpha1.FinalizerCopyPrefix); found {
			clusters = append(clusters, cluster)
		}
	}
	return clusters
}

// VolumeWithCopyIn returns a host PV that records a member's copy.
func VolumeWithCopyIn(host *corev1.PersistentVolume, clusterID string) *corev1.PersistentVolume {
	after := host.DeepCopy()
	after.Finalizers = append(after.Finalizers, v1alpha1.FinalizerCopyPrefix+clusterID)
	return after
}

// VolumeWithoutCopyIn returns a host PV without the record of a member's copy.
func VolumeWithoutCopyIn(host *corev1.PersistentVolume, clusterID string) *corev1.PersistentVolume {
	return volumeWithoutCopiesWhere(host, func(cluster string) bool { return cluster == clusterID })
}

// VolumeWithoutCopies returns a host PV without any record of copies.
func VolumeWithoutCopies(host *corev1.PersistentVolume) *corev1.PersistentVolume {
	return volumeWithoutCopiesWhere(host, func(string) bool { return true })
}

func volumeWithoutCopiesWhere(host *corev1.PersistentVolume, in func(clusterID string) bool) *corev1.PersistentVolume {
	after := host.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool {
		cluster, copied := strings.CutPrefix(f, v1alpha1.FinalizerCopyPrefix)
		return copied && in(cluster)
	})
	return after
}

// IsClaimedVolume reports whether a host PV is bound, or about to be bound, to a claim, and no admin has
// abandoned the PV.
func IsClaimedVolume(host *corev1.PersistentVolume) bool {
	return host.Spec.ClaimRef != nil && host.Spec.ClaimRef.UID != "" && !IsReleasedOrFailed(host) && !IsAbandonedVolume(host)
}

// MayCopySharedVolume reports whether the shared volume that a host PV represents may be copied for the PV's
// claim: the PV is bound to the claim, and no admin has abandoned the PV.
func MayCopySharedVolume(host *corev1.PersistentVolume) bool {
	return host != nil && BackendOfVolume(host) != "" && host.Status.Phase == corev1.VolumeBound && IsClaimedVolume(host)
}
