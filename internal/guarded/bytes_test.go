package guarded

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A member that keeps changing large statuses writes few bytes per second to the host. One that
// changes many small statuses at the same time is not delayed.
func TestStatusesArePaced(t *testing.T) {
	for name, tc := range map[string]struct {
		size, writes int
		least, most  time.Duration
	}{
		"a thousand Pods start":              {6 << 10, 5000, 0, 0},
		"large statuses change continuously": {64 << 10, 2048, 128 * time.Second, 130 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				member := NewByteRate()
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": strings.Repeat("x", tc.size)}}}
				begin := time.Now()
				for range tc.writes {
					if err := member.Wait(t.Context(), pod); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(begin); took < tc.least || took > tc.most {
					t.Errorf("the writes took %s, want %s to %s", took, tc.least, tc.most)
				}
			})
		})
	}
}
