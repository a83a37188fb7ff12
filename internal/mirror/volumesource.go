package mirror

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// pluginPrefix is the prefix for the names of volume plugins that are not CSI drivers.
const pluginPrefix = "kubernetes.io/"

// VolumeSourceOf returns the driver of a leaf PV and its volume handle. For an in-tree volume plugin,
// these are kubernetes.io/<plugin> and the volume's identifier, if it has a simple one.
func VolumeSourceOf(leaf *corev1.PersistentVolume) (driver, handle string) {
	s := &leaf.Spec.PersistentVolumeSource
	if s.CSI != nil {
		return s.CSI.Driver, s.CSI.VolumeHandle
	}
	plugin := volumePluginOf(s)
	if plugin == "" {
		return "", ""
	}
	return pluginPrefix + plugin, inTreeHandleOf(s)
}

// volumePluginOf returns the JSON name of the volume source that is set.
func volumePluginOf(s *corev1.PersistentVolumeSource) string {
	v := reflect.ValueOf(s).Elem()
	for _, f := range fields.JSONFieldsOf(v.Type()) {
		if !v.FieldByIndex(f.Index).IsNil() {
			return f.Name
		}
	}
	return ""
}

func inTreeHandleOf(s *corev1.PersistentVolumeSource) string {
	switch {
	case s.HostPath != nil:
		return s.HostPath.Path
	case s.Local != nil:
		return s.Local.Path
	case s.NFS != nil:
		return s.NFS.Server + ":" + s.NFS.Path
	case s.ISCSI != nil:
		return s.ISCSI.TargetPortal + "/" + s.ISCSI.IQN
	case s.FC != nil:
		return strings.Join(append(append([]string{}, s.FC.TargetWWNs...), s.FC.WWIDs...), ",")
	case s.RBD != nil:
		return s.RBD.RBDPool + "/" + s.RBD.RBDImage
	case s.CephFS != nil:
		return strings.Join(s.CephFS.Monitors, ",") + ":" + s.CephFS.Path
	case s.GCEPersistentDisk != nil:
		return s.GCEPersistentDisk.PDName
	case s.AWSElasticBlockStore != nil:
		return s.AWSElasticBlockStore.VolumeID
	case s.AzureDisk != nil:
		return s.AzureDisk.DataDiskURI
	case s.AzureFile != nil:
		return s.AzureFile.ShareName
	case s.Cinder != nil:
		return s.Cinder.VolumeID
	case s.VsphereVolume != nil:
		return s.VsphereVolume.VolumePath
	case s.PortworxVolume != nil:
		return s.PortworxVolume.VolumeID
	default:
		return ""
	}
}
