package hostpv

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Every kind of host PV names the leaf PV's disk.
func TestSourceOf(t *testing.T) {
	for name, host := range map[string]*corev1.PersistentVolume{
		"a mirror":            TranslateVolume(promiseLeaf, promisee, corev1.PersistentVolumeReclaimDelete, promiseMember),
		"a fulfilled promise": FulfillPromise(NewPromiseFor(promisee, promisor), promiseLeaf, corev1.PersistentVolumeReclaimDelete, promiseMember),
		"an admin's host PV":  RecordImport(static(func(pv *corev1.PersistentVolume) { pv.Annotations = map[string]string{} }), promiseLeaf, promiseMember),
	} {
		t.Run(name, func(t *testing.T) {
			if driver, handle := RecordedSourceOf(host); driver != "disk.example.com" || handle != "d-1" {
				t.Errorf("the source is handle %q of driver %q", handle, driver)
			}
			if !HasRecordedDisk(host, promiseLeaf) {
				t.Error("the leaf PV does not have the recorded disk")
			}
			other := promiseLeaf.DeepCopy()
			other.Spec.CSI.VolumeHandle = "d-2"
			if HasRecordedDisk(host, other) {
				t.Error("another volume has the recorded disk")
			}
		})
	}
	if unfulfilled := NewPromiseFor(promisee, promisor); HasRecordedDisk(unfulfilled, &corev1.PersistentVolume{}) {
		t.Error("a promise without a disk has one")
	}
}
