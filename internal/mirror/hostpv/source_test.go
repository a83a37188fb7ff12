package hostpv

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Every kind of host PV names the leaf PV's disk.
func TestSourceOf(t *testing.T) {
	for name, host := range map[string]*corev1.PersistentVolume{
		"a mirror":            Mirror(promiseLeaf, promisee, corev1.PersistentVolumeReclaimDelete, promiseMember),
		"a fulfilled promise": Fulfil(PromiseFor(promisee, promisor), promiseLeaf, corev1.PersistentVolumeReclaimDelete, promiseMember),
		"an admin's host PV":  Recorded(static(func(pv *corev1.PersistentVolume) { pv.Annotations = map[string]string{} }), promiseLeaf, promiseMember),
	} {
		t.Run(name, func(t *testing.T) {
			if driver, handle := SourceOf(host); driver != "disk.example.com" || handle != "d-1" {
				t.Errorf("the source is handle %q of driver %q", handle, driver)
			}
			if !SameDisk(host, promiseLeaf) {
				t.Error("the leaf PV does not have the recorded disk")
			}
			other := promiseLeaf.DeepCopy()
			other.Spec.CSI.VolumeHandle = "d-2"
			if SameDisk(host, other) {
				t.Error("another volume has the recorded disk")
			}
		})
	}
	if unfulfilled := PromiseFor(promisee, promisor); SameDisk(unfulfilled, &corev1.PersistentVolume{}) {
		t.Error("a promise without a disk has one")
	}
}
