package hostrecord

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/xylem-io/xylem/internal/guarded"
)

// remembered is the maximum number of objects that Missing remembers. If it has forgotten one, it
// records storage as missing although Xylem has destroyed it.
const remembered = 16384

// Missing records the volumes or snapshots that a restored member may have lost, before Xylem
// releases the objects that represent them in the host. Nothing shows that their storage was
// destroyed, and these objects are the last that name it. Of storage that Xylem destroys, this process
// has observed the objects in the member.
type Missing struct {
	Records *Records

	observed *lru.Cache
}

// NewMissing returns a Missing for one member.
func NewMissing(records *Records) *Missing { return &Missing{records, lru.New(remembered)} }

// Observe notes that the member has the storage that an object of the host represents. This is
// necessary only if the host's object is older than the last restore of the member.
func (m *Missing) Observe(host metav1.Object) { m.observed.Add(host.GetUID(), true) }

// Record records the storage that an object of the host represents, unless this process has observed
// it in the member. It reports whether the storage is missing.
func (m *Missing) Record(ctx context.Context, to *guarded.Root, clusterID string, host metav1.Object, what string) (bool, error) {
	if _, observed := m.observed.Get(host.GetUID()); observed {
		return false, nil
	}
	if err := m.Records.RecordAbandoned(ctx, to, clusterID, what+": missing since the member was restored"); err != nil {
		return false, fmt.Errorf("record that %s is missing: %w", what, err)
	}
	return true, nil
}
