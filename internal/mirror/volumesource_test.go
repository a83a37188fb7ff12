package mirror

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestVolumeSourceOf(t *testing.T) {
	cases := map[string]struct {
		source         corev1.PersistentVolumeSource
		driver, handle string
	}{
		"CSI":              {corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}}, "d", "h"},
		"local":            {corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/disk"}}, "kubernetes.io/local", "/disk"},
		"hostPath":         {corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/p"}}, "kubernetes.io/hostPath", "/p"},
		"nfs":              {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/p"}}, "kubernetes.io/nfs", "s:/p"},
		"fc":               {corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{"a", "b"}}}, "kubernetes.io/fc", "a,b"},
		"iscsi":            {corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "p", IQN: "i"}}, "kubernetes.io/iscsi", "p/i"},
		"quobyte":          {corev1.PersistentVolumeSource{Quobyte: &corev1.QuobyteVolumeSource{}}, "kubernetes.io/quobyte", ""},
		"no volume source": {},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			leaf := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: c.source}}
			if driver, handle := VolumeSourceOf(leaf); driver != c.driver || handle != c.handle {
				t.Errorf("got %q, %q; want %q, %q", driver, handle, c.driver, c.handle)
			}
		})
	}
}
