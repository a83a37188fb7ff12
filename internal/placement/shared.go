package placement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// sharedBackend is a storage backend that a member shares: its driver, and the member's classes.
type sharedBackend struct {
	driver  string
	classes []string
}

func backendsByName(shared []v1alpha1.SharedBackend) map[string]sharedBackend {
	found := make(map[string]sharedBackend, len(shared))
	for _, s := range shared {
		found[s.Name] = sharedBackend{s.Driver, s.Classes}
	}
	return found
}

// BackendForClass returns the shared backend on which a member's class provisions volumes of a driver. It
// returns "" if there is none, or if several registered backends match.
func (r Rules) BackendForClass(driver, memberClass string) string {
	name := ""
	for _, n := range slices.Sorted(maps.Keys(r.backends)) {
		if b := r.backends[n]; b.driver == driver && slices.Contains(b.classes, memberClass) {
			if name != "" {
				return ""
			}
			name = n
		}
	}
	return name
}

// BackendNames returns the names of the storage backends that the member shares.
func (r Rules) BackendNames() []string { return slices.Sorted(maps.Keys(r.backends)) }

// SharesVolume reports whether a host PV represents a shared volume of another member, on a backend that
// this member shares.
func (m Member) SharesVolume(host *corev1.PersistentVolume) bool {
	if _, shared := m.Rules.backends[hostpv.BackendOfVolume(host)]; !shared {
		return false
	}
	cluster, _, _, ours := hostpv.LeafOfHostVolume(host)
	return ours && cluster != m.ClusterID
}

// ClassForVolumeCopy returns the member's class for a copy of a shared volume, or why the member must not
// have a copy. class is the host's class of the volume, or nil if it does not exist.
func (m Member) ClassForVolumeCopy(host *corev1.PersistentVolume, class *storagev1.StorageClass) (string, *mirror.Refusal) {
	name := hostpv.BackendOfVolume(host)
	b := m.Rules.backends[name]
	source, _ := hostpv.SharedVolumeSource(host)
	switch {
	case source == nil || b.driver != source.Driver:
		driver := ""
		if source != nil {
			driver = source.Driver
		}
		return "", mirror.NewRefusal(v1alpha1.ReasonBackendMismatch, "volume %q has driver %q, but ClusterRegistration %q names driver %q for backend %q. Correct spec.storage.shared in that ClusterRegistration, or in the one of the member that has the volume",
			host.Name, driver, m.Registration, b.driver, name)
	case class == nil:
		return "", mirror.NewRefusal(v1alpha1.ReasonClassNotFound, "the host has no StorageClass %q, which determines the class of volume %q in member %q. Create the StorageClass again",
			host.Spec.StorageClassName, host.Name, m.Registration)
	}
	mapped, rule := m.StorageClassFor(class)
	if !slices.Contains(b.classes, mapped) {
		return "", mirror.NewRefusal(v1alpha1.ReasonBackendMismatch, "StorageClass %q in the host maps to class %q in member %q (by %s), which spec.storage.shared of ClusterRegistration %q does not list for backend %q. Add the class to that list, or map the host's class to one that is listed",
			class.Name, mapped, m.Registration, rule, m.Registration, name)
	}
	return mapped, nil
}
