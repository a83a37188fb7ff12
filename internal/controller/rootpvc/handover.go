package rootpvc

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/lru"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// handoverPatience is how long a claim is left to the host's PV controller, which
	// takes milliseconds to hand it over, and is waited for no longer than that: it may
	// have met with a conflict itself, and comes back to it in its own time.
	handoverPatience = time.Second
	// handoversSeen is for how many claims it is known since when.
	handoversSeen = 4096
)

// handovers knows since when claims wait for the host's PV controller to say that it
// is a provisioner's turn, as it does for every provisioner outside of it. A claim
// that was placed earlier would have it meet with a conflict, and tell the user that
// provisioning has failed.
type handovers struct {
	mu    sync.Mutex
	since *lru.Cache // root UID -> time.Time
}

func newHandovers() *handovers { return &handovers{since: lru.New(handoversSeen)} }

// observeHandover looks for how long a claim still waits, for which the scheduler has
// just chosen the member.
func (r *reconciler) observeHandover(o *observed) {
	if o.class == nil || o.class.Provisioner != v1alpha1.ProvisionerName || o.leaf != nil || o.root.Spec.VolumeName != "" ||
		o.root.Annotations[route.AnnSelectedNode] != r.NodeName || o.root.Annotations[v1alpha1.AnnotationPlacedIn] != "" {
		return
	}
	o.handover = r.handovers.left(o.root, r.Clock.Now())
}

// left is for how long a claim still waits; 0: it is Xylem's turn.
func (h *handovers) left(root *corev1.PersistentVolumeClaim, now time.Time) time.Duration {
	if root.Annotations[volumehelpers.AnnStorageProvisioner] == v1alpha1.ProvisionerName {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	value, _ := h.since.Get(root.UID)
	since, known := value.(time.Time)
	if !known {
		since = now
		h.since.Add(root.UID, since)
	}
	return max(0, handoverPatience-now.Sub(since))
}
