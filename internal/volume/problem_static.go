package volume

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
)

// ImportAllowed reports whether an admin's host PV may adopt the leaf PV that it requests. No other
// host PV may request or represent it.
func ImportAllowed(s *Observed) bool {
	return s.Host == nil && ReportImportRefused(s) == nil && len(s.Imports) > 0
}

// ReportImportRefused reports why an admin's host PV cannot adopt the leaf PV that it requests. It
// returns nil if the host PV may adopt it, or if there is no such host PV.
func ReportImportRefused(s *Observed) *mirror.Refusal {
	asks := s.ImportingHostVolume()
	if asks == nil {
		return nil
	}
	return WhyImportRefused(s, asks)
}

// WhyImportRefused returns why an admin's host PV cannot adopt the leaf PV that it requests, or nil.
// Xylem never adopts a volume that a user of the member uses, or may use.
func WhyImportRefused(s *Observed, asks *corev1.PersistentVolume) *mirror.Refusal {
	if other := otherHostVolumeFor(s, asks); other != "" {
		return newImportRefusal(s, asks, "PersistentVolume %q in the host represents or requests the same volume. Delete whichever of the two PersistentVolumes is not bound to a claim", other)
	}
	switch attribute := asks.Spec.CSI.VolumeAttributes[v1alpha1.AttributeLeafUID]; {
	case asks.DeletionTimestamp != nil:
		return newImportRefusal(s, asks, "the PersistentVolume is being deleted. Create it again to use the volume")
	case s.Leaf == nil:
		return newImportRefusal(s, asks, "the member has no such volume. Check the name in spec.csi.volumeHandle. The handle of a PersistentVolume cannot be changed, so delete the PersistentVolume and create it again with the right handle")
	case attribute != "" && attribute != string(s.Leaf.UID):
		return newImportRefusal(s, asks, "the volume was re-created, so it now has UID %q, but the PersistentVolume requests UID %q in spec.csi.volumeAttributes[%s]. Check whose data the volume has, then delete the PersistentVolume and create it again without that attribute", s.Leaf.UID, attribute, v1alpha1.AttributeLeafUID)
	}
	if refusal := leafVolumeUnavailable(s, asks); refusal != nil {
		return refusal
	}
	if wrong := importMismatches(s, asks); len(wrong) > 0 {
		return newImportRefusal(s, asks, "%s. Delete the PersistentVolume and create one that matches the volume", strings.Join(wrong, "; "))
	}
	return nil
}

// otherHostVolumeFor returns the name of another host PV that represents or requests the volume, or that
// represents an earlier volume with its name.
func otherHostVolumeFor(s *Observed, asks *corev1.PersistentVolume) string {
	for _, has := range []*corev1.PersistentVolume{s.Host, s.TakingHost} {
		if has != nil && has.UID != asks.UID {
			return has.Name
		}
	}
	for _, all := range [][]corev1.PersistentVolume{s.EarlierHosts, s.Imports} {
		for i := range all {
			if all[i].UID != asks.UID {
				return all[i].Name
			}
		}
	}
	return ""
}

// leafVolumeUnavailable returns why a host PV cannot represent the leaf PV because of its state in the
// member, or nil.
func leafVolumeUnavailable(s *Observed, host *corev1.PersistentVolume) *mirror.Refusal {
	leaf, ref := s.Leaf, ptr.Deref(s.Leaf.Spec.ClaimRef, corev1.ObjectReference{})
	label := leaf.Labels[v1alpha1.LabelHost]
	shared, copied := mirror.VolumeCopyFromHost(s.Member.HostID, leaf)
	switch {
	case leaf.DeletionTimestamp != nil:
		return newImportRefusal(s, host, "the volume is being deleted. Use another volume")
	case label == "":
		return mirror.NewRefusal(v1alpha1.ReasonConsentMissing, "PersistentVolume %q cannot adopt volume %q of member %q: the member's admin has not consented. "+
			"Ask them to run `kubectl label persistentvolume %s %s=%s` in the member", host.Name, s.Name, s.Member.Registration, s.Name, v1alpha1.LabelHost, s.Member.HostID)
	case label != s.Member.HostID:
		return newImportRefusal(s, host, "the volume belongs to another host (label %s=%q). If that host no longer uses it, ask the member's admin to change the label to %q", v1alpha1.LabelHost, label, s.Member.HostID)
	case copied: // the label is part of the copy's stamp, and not a consent
		return newImportRefusal(s, host, "the volume is a copy of the shared volume %q of this host, so it has no data of its own. Delete the PersistentVolume, and use %[1]q. If %[1]q no longer exists, ask the member's admin to create another PersistentVolume for the same storage, without the copy's labels and annotations", shared.Volume)
	case leaf.Status.Phase == corev1.VolumeBound && !heldByLeafClaimOfHost(s), leaf.Status.Phase == corev1.VolumeAvailable && ref.Name != "":
		return newImportRefusal(s, host, "the member's claim \"%s/%s\" is, or will be, bound to the volume. Xylem does not take the volume from that claim. Use another volume, or ask the member's admin to delete that claim and to remove spec.claimRef if it remains", ref.Namespace, ref.Name)
	case leaf.Status.Phase == corev1.VolumeReleased && leaf.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return newImportRefusal(s, host, "the volume's claim is gone and the volume's reclaim policy is %q, so the data is being deleted. Ask the member's admin to set the policy to Retain, if the data still exists", leaf.Spec.PersistentVolumeReclaimPolicy)
	case !slices.Contains([]corev1.PersistentVolumePhase{corev1.VolumeBound, corev1.VolumeAvailable, corev1.VolumeReleased}, leaf.Status.Phase):
		return newImportRefusal(s, host, "the volume's phase is %q. Ask the member's admin to check the volume", leaf.Status.Phase)
	case s.LeafStamped:
		return stampedLeafUnavailable(s, host)
	}
	noted := leaf.Annotations[v1alpha1.AnnotationReclaimPolicy]
	if noted != "" && noted != string(leaf.Spec.PersistentVolumeReclaimPolicy) {
		return newImportRefusal(s, host, "the volume's annotation %s=%s differs from its reclaim policy %q. Ask the member's admin to remove the annotation", v1alpha1.AnnotationReclaimPolicy, noted, leaf.Spec.PersistentVolumeReclaimPolicy)
	}
	return nil
}

// stampedLeafUnavailable returns a refusal if a claim in the host owns the stamped leaf PV. It returns
// nil if that claim does not exist, or if the host PV is for that claim.
func stampedLeafUnavailable(s *Observed, host *corev1.PersistentVolume) *mirror.Refusal {
	if root := s.StampRoot; root != nil && root.Spec.VolumeName != host.Name && (host.Spec.ClaimRef == nil || host.Spec.ClaimRef.UID != root.UID) {
		return newImportRefusal(s, host, "the volume belongs to claim %q of this host. Delete the PersistentVolume, or that claim", s.Stamp.Root)
	}
	return nil
}

// heldByLeafClaimOfHost reports whether a leaf claim of this host uses the leaf PV.
func heldByLeafClaimOfHost(s *Observed) bool {
	return s.LeafStamped && slices.ContainsFunc([]*corev1.PersistentVolumeClaim{s.LeafClaim, s.Holder}, func(claim *corev1.PersistentVolumeClaim) bool {
		return hostpv.ClaimRefHasUIDOf(s.Leaf, claim) && claim.Spec.VolumeName == s.Name
	})
}

// importMismatches lists the properties of a host PV that do not match the leaf PV.
func importMismatches(s *Observed, host *corev1.PersistentVolume) []string {
	var wrong []string
	want, has := host.Spec.Capacity[corev1.ResourceStorage], s.Leaf.Spec.Capacity[corev1.ResourceStorage]
	if want.Cmp(has) > 0 {
		wrong = append(wrong, fmt.Sprintf("the volume's capacity is %s, but the PersistentVolume declares %s", has.String(), want.String()))
	}
	for _, mode := range host.Spec.AccessModes {
		if !slices.Contains(s.Leaf.Spec.AccessModes, mode) {
			wrong = append(wrong, fmt.Sprintf("the volume lacks access mode %s", mode))
		}
	}
	if a, b := volumeModeOf(host), volumeModeOf(s.Leaf); a != b {
		wrong = append(wrong, fmt.Sprintf("the volume has mode %s, but the PersistentVolume has mode %s", b, a))
	}
	if name := host.Spec.StorageClassName; name != "" {
		class := s.ImportClass
		if class == nil || class.Name != name {
			class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		if mapped, rule := (placement.Member{Member: s.Member, Rules: s.Rules}).StorageClassFor(class); mapped != s.Leaf.Spec.StorageClassName {
			wrong = append(wrong, fmt.Sprintf("the volume's StorageClass is %q, but the PersistentVolume's StorageClass %q maps to %q in that member (by %s)", s.Leaf.Spec.StorageClassName, name, mapped, rule))
		}
	}
	return wrong
}

func volumeModeOf(pv *corev1.PersistentVolume) corev1.PersistentVolumeMode {
	return ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
}

func newImportRefusal(s *Observed, host *corev1.PersistentVolume, format string, args ...any) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonAdoptionRefused, "PersistentVolume %q cannot adopt volume %q of member %q: %s",
		host.Name, s.Name, s.Member.Registration, fmt.Sprintf(format, args...))
}

// ReportKeptNeverUsed reports why Xylem keeps an adopted volume that no claim in the host has used.
func ReportKeptNeverUsed(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonReleaseRefused, "Xylem keeps the adopted volume %q in member %q: the claim of the PersistentVolume was deleted before any Pod used the volume. "+
		"To use the volume, remove spec.claimRef from the PersistentVolume. Otherwise, delete the PersistentVolume, and ask the member's admin to delete the volume", s.Name, s.Member.Registration)
}

// ReportImportNotTaken reports why the leaf PV that an admin's host PV represents cannot be stamped for
// it, or nil.
func ReportImportNotTaken(s *Observed) *mirror.Refusal {
	if s.Host.DeletionTimestamp != nil {
		return newImportRefusal(s, s.Host, "the PersistentVolume is being deleted. Create it again to use the volume")
	}
	return leafVolumeUnavailable(s, s.Host)
}
