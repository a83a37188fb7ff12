package leafpv

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func (r *reconciler) eventMirrored(root *corev1.PersistentVolumeClaim, host *corev1.PersistentVolume) {
	r.Recorder.Eventf(root, host, corev1.EventTypeNormal, v1alpha1.ReasonVolumeMirrored, "Mirror",
		"member %s has made volume %s", r.Registration, host.Name)
}

func (r *reconciler) eventSurplus(root *corev1.PersistentVolumeClaim, leaf *corev1.PersistentVolume, why string) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, v1alpha1.ReasonSurplusVolume, "Mirror",
		"member %s has a volume %s for this claim that is not used: %s. Its data are kept; delete it there if nobody needs it", r.Registration, leaf.Name, why)
}

func (r *reconciler) eventUnused(o observed, d unused) {
	r.Recorder.Eventf(o.root, nil, corev1.EventTypeWarning, d.reason, "Mirror",
		"leaf volume %q in member %q may be this claim's own disk, and is not used: %s. Xylem keeps its data", o.leaf.Name, r.Registration, d.why)
}

func (r *reconciler) eventMadeAnew(root *corev1.PersistentVolumeClaim, host *corev1.PersistentVolume) {
	r.Recorder.Eventf(root, host, corev1.EventTypeWarning, v1alpha1.ReasonVolumeMadeAnew, "Mirror",
		"volume %s was gone from the host and stands for the one in member %s again, with policy Retain: set Delete if its data are to go with the claim", host.Name, r.Registration)
}

func (r *reconciler) eventAdopted(root *corev1.PersistentVolumeClaim, host *corev1.PersistentVolume) {
	r.Recorder.Eventf(root, host, corev1.EventTypeNormal, v1alpha1.ReasonVolumeAdopted, "Adopt",
		"volume %s in member %s, which an earlier claim of this name had, is this claim's now, with policy Retain", host.Name, r.Registration)
}

// eventFulfilled tells the claim, and the Pods that use it.
func (r *reconciler) eventFulfilled(o observed, host *corev1.PersistentVolume, consumers []corev1.Pod) {
	if o.root == nil {
		return
	}
	about := []runtime.Object{o.root}
	for i := range consumers {
		about = append(about, &consumers[i])
	}
	storage := host.Spec.Capacity[corev1.ResourceStorage]
	for _, object := range about {
		r.Recorder.Eventf(object, host, corev1.EventTypeNormal, v1alpha1.ReasonPromiseFulfilled, "Fulfil",
			"member %s has made volume %s of %s for claim %s", r.Registration, o.leaf.Name, storage.String(), o.root.Name)
	}
}
