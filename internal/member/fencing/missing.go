package fencing

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/xylem-io/xylem/internal/guarded"
)

// maxObserved is the maximum number of objects that MissingStorage remembers.
const maxObserved = 16384

// MissingStorage records the volumes or snapshots that a restored member may have lost, before Xylem
// releases the objects that represent them in the host. These objects are the last that name the
// storage, and nothing shows that it was destroyed. Xylem observes an object in the member before it
// destroys its storage, but forgets this when the member's connection ends.
type MissingStorage struct {
	records  *HostRecords
	observed *lru.Cache // UIDs of the host's objects
}

// NewMissingStorage returns a MissingStorage for one member.
func NewMissingStorage(records *HostRecords) *MissingStorage {
	return &MissingStorage{records, lru.New(maxObserved)}
}

// RecordObserved notes that the member has the storage that an object of the host represents. This is
// necessary only if the host's object is older than the last restore of the member.
func (m *MissingStorage) RecordObserved(host metav1.Object) { m.observed.Add(host.GetUID(), true) }

// RecordUnlessObserved records the storage that an object of the host represents, unless it was observed in the
// member, or is already recorded. It reports whether it has recorded the storage.
func (m *MissingStorage) RecordUnlessObserved(ctx context.Context, to *guarded.HostWriter, clusterID string, host metav1.Object, what string) (bool, error) {
	if _, observed := m.observed.Get(host.GetUID()); observed {
		return false, nil
	}
	if err := m.records.RecordAbandoned(ctx, to, clusterID, what); err != nil {
		return false, fmt.Errorf("record that %s is missing: %w", what, err)
	}
	m.RecordObserved(host)
	return true, nil
}
