package move

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
)

// phase is the progress of a move.
type phase string

const (
	// copying means that the claim and its disk are unchanged. The copy may be incomplete.
	copying phase = "Copying"
	// swapping means that the copy has the disk's checksum. The claim may be in deletion, and its disk
	// must be compared once more.
	swapping phase = "Swapping"
	// sealed means that the disk still had the checksum after the deletion of the claim began. Nothing
	// can write to the disk now.
	sealed phase = "Sealed"
	// rebinding means that both claims are deleted. The claim may exist again, bound to the copy.
	rebinding phase = "Rebinding"
	// done means that the claim is bound to the copy.
	done phase = "Done"
	// undoing means that the command switches the claim back to its old disk.
	undoing phase = "Undoing"
)

// place identifies a member.
type place struct {
	Registration string `json:"registration"`
	ClusterID    string `json:"clusterID"`
}

// disk identifies a PersistentVolume of the host.
type disk struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// Policy is the volume's reclaim policy before the move.
	Policy corev1.PersistentVolumeReclaimPolicy `json:"policy"`
}

// record is the durable state of a move.
type record struct {
	// ID is in the names and labels of everything that the move creates.
	ID string `json:"id"`
	// Run is the ID of the last run of the command. Only this run can continue the move.
	Run   string `json:"run"`
	Phase phase  `json:"phase"`
	// Claim is the manifest to create the claim again, without fields that Kubernetes and Xylem wrote.
	// ClaimUID is the UID of the claim with the old disk.
	Claim    *corev1.PersistentVolumeClaim `json:"claim"`
	ClaimUID types.UID                     `json:"claimUID"`
	From     place                         `json:"from"`
	To       place                         `json:"to"`
	// Copy is the name of the second claim.
	Copy string `json:"copy"`
	Old  disk   `json:"old"`
	New  disk   `json:"new"`
	// Sum is the checksum of both disks. Bytes is the size of a block device.
	Sum   string `json:"sum,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	// Used means that Pods may have written to the copy.
	Used bool `json:"used,omitempty"`
}

// where returns the member in which the Pod with a role runs.
func (r *record) where(role string) place {
	if role == writes {
		return r.To
	}
	return r.From
}

// recordKey is the ConfigMap's key that contains the record.
const recordKey = "move"

// longestName is the maximum length of the part of a name that comes from the claim.
const longestName = 200

// recordName returns the name of the ConfigMap for the moves of a claim.
func recordName(claim string) string {
	const prefix = "xylem-move-"
	if len(claim) <= longestName {
		return prefix + claim
	}
	digest := sha256.Sum256([]byte(claim))
	return prefix + short(claim) + "-" + hex.EncodeToString(digest[:4])
}

// errTakenOver is returned if another run has taken over the move.
var errTakenOver = errors.New("another run of this command has taken over. Wait until it ends, or stop it and run this command again")

// book reads and writes the record of one claim.
type book struct {
	host      *command.Cluster
	namespace string
	claim     string
	// stored is the ConfigMap as last read or written, or nil.
	stored *corev1.ConfigMap
}

// read returns the record, or nil if the claim has none.
func (b *book) read(ctx context.Context) (*record, error) {
	stored, err := index.Find[corev1.ConfigMap](ctx, b.host, client.ObjectKey{Namespace: b.namespace, Name: recordName(b.claim)})
	if err != nil || stored == nil {
		b.stored = nil
		return nil, err
	}
	b.stored = stored.DeepCopy()
	r := &record{}
	if err := json.Unmarshal([]byte(stored.Data[recordKey]), r); err != nil || r.Claim == nil || r.Claim.Namespace != b.namespace || r.Claim.Name != b.claim || stored.Labels[v1alpha1.LabelMove] != r.ID {
		return nil, fmt.Errorf("ConfigMap \"%s/%s\" is not the record of a move. Rename or delete it", b.namespace, stored.Name)
	}
	return r, nil
}

// write writes the record. It fails if another run has written it since this one read it.
func (b *book) write(ctx context.Context, r *record, dry bool) error {
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the record: %w", err)
	}
	labels := map[string]string{v1alpha1.LabelManagedBy: manager, v1alpha1.LabelMove: r.ID}
	if b.stored == nil {
		created := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: recordName(b.claim), Labels: labels},
			Data:       map[string]string{recordKey: string(content)},
		}
		err := b.host.Create(ctx, created, command.CreateOptions(dry)...)
		switch {
		case apierrors.IsAlreadyExists(err):
			return errTakenOver
		case err != nil:
			return fmt.Errorf("create the record, ConfigMap %q: %w", created.Name, err)
		case !dry:
			b.stored = created
		}
		return nil
	}
	after := b.stored.DeepCopy()
	after.Labels, after.Data = labels, map[string]string{recordKey: string(content)}
	err = b.host.Patch(ctx, after, client.MergeFromWithOptions(b.stored, client.MergeFromWithOptimisticLock{}), command.PatchOptions(dry)...)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return errTakenOver
	case err != nil:
		return fmt.Errorf("write the record, ConfigMap %q: %w", after.Name, err)
	case !dry:
		b.stored = after
	}
	return nil
}

// remove deletes the record.
func (b *book) remove(ctx context.Context) error {
	if b.stored == nil {
		return nil
	}
	version := b.stored.ResourceVersion
	err := b.host.Delete(ctx, b.stored.DeepCopy(), client.Preconditions{UID: &b.stored.UID, ResourceVersion: &version})
	switch {
	case apierrors.IsConflict(err):
		return errTakenOver
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("delete the record, ConfigMap %q: %w", b.stored.Name, err)
	}
	b.stored = nil
	return nil
}
