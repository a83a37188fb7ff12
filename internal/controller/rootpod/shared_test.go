package rootpod

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Of the Pods that share an unbound claim, exactly one becomes its consumer. Otherwise, they would
// wait for each other.
func TestPrecedes(t *testing.T) {
	start := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	podOf := func(uid types.UID, age time.Duration) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, CreationTimestamp: metav1.NewTime(start.Add(-age))}}
	}
	pods := []*corev1.Pod{podOf("b", time.Minute), podOf("a", time.Minute), podOf("c", time.Hour), podOf("d", 0)}
	for _, pod := range pods {
		first := true
		for _, other := range pods {
			first = first && (other == pod || !podPrecedes(other, pod))
		}
		if want := pod.UID == "c"; first != want {
			t.Errorf("Pod %s is the consumer: %t, want %t", pod.UID, first, want)
		}
	}
}
