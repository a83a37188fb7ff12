package objects

import (
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// Phase is the progress of a move.
type Phase string

// The phases of a move, in order.
const (
	// Copying means that the claim and its disk are unchanged. The copy may be incomplete.
	Copying Phase = "Copying"
	// Swapping means that the copy has the same checksum as the old disk. The claim may already be
	// terminating, and its disk must be compared once more.
	Swapping Phase = "Swapping"
	// Sealed means that the old disk still had that checksum after the deletion of the claim began.
	// Nothing can write to the old disk now.
	Sealed Phase = "Sealed"
	// Rebinding means that both claims are deleted. The claim may exist again, bound to the copy.
	Rebinding Phase = "Rebinding"
	// Done means that the claim is bound to the copy.
	Done Phase = "Done"
	// Undoing means that the command switches the claim back to its old disk.
	Undoing Phase = "Undoing"
)

// Place identifies a member.
type Place struct {
	Registration string `json:"registration"`
	ClusterID    string `json:"clusterID"`
	// Restores identifies the registration, and the last restore of the host or the member that Xylem
	// had detected, when the move began.
	Restores string `json:"restores"`
}

// PlaceOf returns the member of a registration.
func PlaceOf(cr *v1alpha1.ClusterRegistration) Place {
	last := ""
	if at := cr.Status.LastRestored; at != nil {
		last = at.UTC().Format(time.RFC3339)
	}
	return Place{Registration: cr.Name, ClusterID: cr.Status.ClusterID, Restores: string(cr.UID) + "/" + last}
}

// Disk identifies a PersistentVolume of the host.
type Disk struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// DiskOf returns the disk of a PersistentVolume.
func DiskOf(pv *corev1.PersistentVolume) Disk { return Disk{Name: pv.Name, UID: pv.UID} }

// Record is the durable state of a move.
type Record struct {
	// ID is in the names and labels of everything that the move creates.
	ID string `json:"id"`
	// Run is the ID of the last run of the command. Only this run can continue the move.
	Run   string `json:"run"`
	Phase Phase  `json:"phase"`
	// Claim is the manifest for creating the claim again. It lacks fields that Kubernetes or Xylem
	// wrote. ClaimUID is the UID of the claim with the old disk.
	Claim    *corev1.PersistentVolumeClaim `json:"claim"`
	ClaimUID types.UID                     `json:"claimUID"`
	From     Place                         `json:"from"`
	To       Place                         `json:"to"`
	// Copy is the name of the second claim.
	Copy string `json:"copy"`
	Old  Disk   `json:"old"`
	New  Disk   `json:"new"`
	// Sum is the checksum of both disks. Bytes is the size of a block device.
	Sum   string `json:"sum,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	// Used means that Pods may have written to the copy.
	Used bool `json:"used,omitempty"`
}

// word matches texts of a record that are printed, but are not names.
var word = regexp.MustCompile(`^[\w.-]*$`)

// wellFormed reports whether the command can have written the record. A tenant can write it too, and
// the command prints its texts as part of sentences and of commands to run.
func (r *Record) wellFormed() bool {
	for _, name := range []string{r.From.Registration, r.To.Registration, r.Copy, r.Old.Name, r.New.Name} {
		if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return false
		}
	}
	for _, text := range []string{r.ID, string(r.Phase), r.From.ClusterID, r.To.ClusterID} {
		if !word.MatchString(text) {
			return false
		}
	}
	return r.Claim != nil
}

// FitsVolume reports whether a claim with the recorded manifest could be bound to a volume: the class and
// the modes are those of the volume.
func (r *Record) FitsVolume(pv *corev1.PersistentVolume) bool {
	modeOf := func(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
		return ptr.Deref(mode, corev1.PersistentVolumeFilesystem)
	}
	return hostpv.ClassNameOf(r.Claim) == pv.Spec.StorageClassName && modeOf(r.Claim.Spec.VolumeMode) == modeOf(pv.Spec.VolumeMode) &&
		!slices.ContainsFunc(r.Claim.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(pv.Spec.AccessModes, mode) })
}

// IsBlock reports whether the claim's volumes are block devices.
func (r *Record) IsBlock() bool {
	return ptr.Deref(r.Claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock
}

// idLength is the length of the random part of names. The API server detects collisions.
const idLength = 5

// NewMoveID returns the ID of a new move, run or second claim.
func NewMoveID() string { return rand.String(idLength) }

// NameForMove returns the name, or a prefix of the names, of objects that a move of the claim creates.
// id is random.
func NameForMove(claim, id string) string { return shortClaimName(claim) + "-move-" + id }
