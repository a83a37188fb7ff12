package fencing

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

// The creationTimestamps of the host and of a member are from different clocks.
func TestClocksMayDiffer(t *testing.T) {
	restored := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		restored         time.Time
		created          time.Duration // after the restore, by the clock of the object's cluster
		inMember, inHost bool
	}{
		"never restored":                         {created: -time.Hour},
		"created before":                         {restored: restored, created: -time.Second, inMember: true, inHost: true},
		"created in the same second":             {restored: restored, inMember: true, inHost: true},
		"created later, within the clocks' skew": {restored: restored, created: mirror.MaxClockSkew, inHost: true},
		"created later":                          {restored: restored, created: mirror.MaxClockSkew + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(restored.Add(tc.created))}
			r := RestoreTimes{Member: tc.restored}
			if got := r.MayBeFromBackup(object); got != tc.inMember {
				t.Errorf("for an object in the member, Predates is %t", got)
			}
			if got := r.MayLackLeaf(object); got != tc.inHost {
				t.Errorf("for an object in the host, MayLackLeaf is %t", got)
			}
		})
	}
}
