package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
)

// key is the key of the ConfigMap entry that contains the record.
const key = "move"

// longestName is the maximum length of the part of a name that comes from the claim.
const longestName = 200

// shortClaimName truncates a claim's name to leave space for suffixes.
func shortClaimName(claim string) string {
	return strings.TrimRight(claim[:min(len(claim), longestName)], "-.")
}

// ConfigMapName returns the name of the ConfigMap for the moves of a claim.
func ConfigMapName(claim string) string {
	const prefix = "xylem-move-"
	if len(claim) <= longestName {
		return prefix + claim
	}
	digest := sha256.Sum256([]byte(claim))
	return prefix + shortClaimName(claim) + "-" + hex.EncodeToString(digest[:4])
}

// ErrTakenOver is returned if another run has taken over the move.
var ErrTakenOver = errors.New("another run of this command has taken over. Wait until that run ends, or stop it and run this command again")

// Store reads and writes the record of one claim.
type Store struct {
	host  *Client
	claim string
	// stored is the ConfigMap as last read or written, or nil.
	stored *corev1.ConfigMap
}

// NewStore creates the Store for the moves of a claim.
func NewStore(h *Client, claim string) *Store { return &Store{host: h, claim: claim} }

// Read returns the record, or nil if the claim has none.
func (s *Store) Read(ctx context.Context) (*Record, error) {
	stored, err := index.FindObject[corev1.ConfigMap](ctx, s.host, client.ObjectKey{Namespace: s.host.Namespace, Name: ConfigMapName(s.claim)})
	if err != nil || stored == nil {
		s.stored = nil
		return nil, s.host.ExplainHostError(err)
	}
	s.stored = stored.DeepCopy()
	r := &Record{}
	if err := json.Unmarshal([]byte(stored.Data[key]), r); err != nil || !r.wellFormed() || r.Claim.Namespace != s.host.Namespace || r.Claim.Name != s.claim || stored.Labels[v1alpha1.LabelMove] != r.ID {
		return nil, s.host.ExplainHostError(fmt.Errorf("ConfigMap \"%s/%s\" is not the record of a move. Delete the ConfigMap, or re-create it under another name", s.host.Namespace, stored.Name))
	}
	return r, nil
}

// Write writes the record. It fails with ErrTakenOver if another run has written the record since
// this run read it. If dry is set, the host only validates the write.
func (s *Store) Write(ctx context.Context, r *Record, dry bool) error {
	content, err := json.Marshal(r)
	if err != nil {
		return s.host.ExplainHostError(fmt.Errorf("encode the record: %w", err))
	}
	data := map[string]string{key: string(content)}
	if s.stored == nil {
		created := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.host.Namespace, Name: ConfigMapName(s.claim), Labels: LabelsOfMove(r.ID)},
			Data:       data,
		}
		err := s.host.Create(ctx, created, command.CreateOptions(dry)...)
		switch {
		case apierrors.IsAlreadyExists(err):
			return ErrTakenOver
		case err != nil:
			return s.host.ExplainHostError(fmt.Errorf("create the record, ConfigMap %q: %w", created.Name, err))
		case !dry:
			s.stored = created
		}
		return nil
	}
	after := s.stored.DeepCopy()
	after.Labels, after.Data = LabelsOfMove(r.ID), data
	err = s.host.Patch(ctx, after, client.MergeFromWithOptions(s.stored, client.MergeFromWithOptimisticLock{}), command.PatchOptions(dry)...)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return ErrTakenOver
	case err != nil:
		return s.host.ExplainHostError(fmt.Errorf("write the record, ConfigMap %q: %w", after.Name, err))
	case !dry:
		s.stored = after
	}
	return nil
}

// IsCurrentRun fails with ErrTakenOver if another run has taken over. A run calls it between reading an
// object and writing it with a precondition. The run that takes over first writes the record and
// then the object, so one of the two checks fails for the earlier run.
func (s *Store) IsCurrentRun(ctx context.Context) error {
	stored, err := index.FindObject[corev1.ConfigMap](ctx, s.host, client.ObjectKeyFromObject(s.stored))
	if err != nil {
		return s.host.ExplainHostError(err)
	}
	if stored == nil || stored.ResourceVersion != s.stored.ResourceVersion {
		return ErrTakenOver
	}
	return nil
}

// Delete deletes the record.
func (s *Store) Delete(ctx context.Context) error {
	if s.stored == nil {
		return nil
	}
	version := s.stored.ResourceVersion
	err := s.host.Delete(ctx, s.stored.DeepCopy(), client.Preconditions{UID: &s.stored.UID, ResourceVersion: &version})
	switch {
	case apierrors.IsConflict(err):
		return ErrTakenOver
	case client.IgnoreNotFound(err) != nil:
		return s.host.ExplainHostError(fmt.Errorf("delete the record, ConfigMap %q: %w", s.stored.Name, err))
	}
	s.stored = nil
	return nil
}
