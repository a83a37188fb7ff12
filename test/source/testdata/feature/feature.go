// Package feature uses data that proof.Needs does not list.
package feature

import corev1 "k8s.io/api/core/v1"

func source(pv *corev1.PersistentVolume) string { return pv.Spec.StorageOS.VolumeName }
