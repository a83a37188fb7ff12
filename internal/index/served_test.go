package index

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/internal/mirror"
)

// After a start, nothing is reported about a snapshot until it is known whether the host serves snapshots.
func TestSourceWhileSnapshotsAreUnknown(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(mirror.SnapshotGroup), Kind: mirror.SnapshotKind, Name: "nightly"}
	unknown := errors.New("not known yet")
	if _, err := ReadDataSource(t.Context(), nil, nil, func() (bool, error) { return false, unknown }, claim); !errors.Is(err, unknown) {
		t.Errorf("got %v", err)
	}
	if s, err := ReadDataSource(t.Context(), nil, nil, func() (bool, error) { return false, nil }, claim); err != nil || !s.Unserved {
		t.Errorf("got %+v, %v, want a source that is not served", s, err)
	}
}
