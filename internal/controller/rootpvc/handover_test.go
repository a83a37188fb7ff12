package rootpvc

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestHandovers(t *testing.T) {
	claim := func(uid types.UID, provisioner string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: uid}}
		if provisioner != "" {
			c.Annotations = map[string]string{volumehelpers.AnnStorageProvisioner: provisioner}
		}
		return c
	}
	h, start := newHandovers(), time.Unix(1_800_000_000, 0)
	for _, step := range []struct {
		name  string
		claim *corev1.PersistentVolumeClaim
		after time.Duration
		want  time.Duration
	}{
		{"handed over when it is seen", claim("a", v1alpha1.ProvisionerName), 0, 0},
		{"not yet", claim("b", ""), 0, handoverPatience},
		{"another provisioner's, as after its class was made anew", claim("c", "disk.example.com"), 0, handoverPatience},
		{"still not", claim("b", ""), handoverPatience / 4, handoverPatience * 3 / 4},
		{"handed over", claim("b", v1alpha1.ProvisionerName), handoverPatience / 2, 0},
		{"waited for long enough", claim("c", ""), handoverPatience, 0},
		{"and never again", claim("c", ""), 10 * handoverPatience, 0},
		{"the next claim of that name", claim("d", ""), 10 * handoverPatience, handoverPatience},
	} {
		if got := h.left(step.claim, start.Add(step.after)); got != step.want {
			t.Errorf("%s: waits for %s, want %s", step.name, got, step.want)
		}
	}
}
