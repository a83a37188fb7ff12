package reflection

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// offeredByLabel returns the label that marks a host class as offered by a registration.
func offeredByLabel(registration string) string { return v1alpha1.LabelOfferedByPrefix + registration }

// IsReflectedClass reports whether Xylem reflected a host class, according to its provisioner and both kinds of
// labels. An admin can take over the class by removing either kind.
func IsReflectedClass(class *storagev1.StorageClass) bool {
	if !hostpv.IsXylemClass(class) || class.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
		return false
	}
	for key := range class.Labels {
		if strings.HasPrefix(key, v1alpha1.LabelOfferedByPrefix) {
			return true
		}
	}
	return false
}

// publishedTermsOf returns the terms that a registration offers according to the host class alone.
func publishedTermsOf(cr *v1alpha1.ClusterRegistration, host *storagev1.StorageClass) (ClassTerms, bool) {
	if host == nil || !IsReflectedClass(host) || host.Labels[offeredByLabel(cr.Name)] == "" || !slices.Contains(clusterIDsOf(host), cr.Status.ClusterID) {
		return ClassTerms{}, false
	}
	return classTermsOf(host), true
}

// clusterIDsOf returns the cluster IDs in the topologies of a host class.
func clusterIDsOf(class *storagev1.StorageClass) []string {
	var ids []string
	for _, term := range class.AllowedTopologies {
		for _, expression := range term.MatchLabelExpressions {
			if expression.Key == v1alpha1.LabelClusterID {
				ids = append(ids, expression.Values...)
			}
		}
	}
	return ids
}

// HostClassForRuling returns the host class for a ruling, based on the existing class, or a new one if that
// is nil. It keeps other writers' labels and annotations.
func HostClassForRuling(name string, ruling Ruling, has *storagev1.StorageClass) *storagev1.StorageClass {
	class := &storagev1.StorageClass{}
	if has != nil {
		class = has.DeepCopy()
	}
	class.Name = name
	class.Labels = maps.Clone(class.Labels)
	if class.Labels == nil {
		class.Labels = map[string]string{}
	}
	maps.DeleteFunc(class.Labels, func(key, _ string) bool { return strings.HasPrefix(key, v1alpha1.LabelOfferedByPrefix) })
	class.Labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedByValue
	ids := make([]string, 0, len(ruling.Offering))
	for _, offering := range ruling.Offering {
		class.Labels[offeredByLabel(offering.Registration)] = "true"
		ids = append(ids, offering.ClusterID)
	}
	slices.Sort(ids)
	class.Provisioner = v1alpha1.ProvisionerName
	class.ReclaimPolicy = &ruling.Terms.Policy
	class.AllowVolumeExpansion = &ruling.Terms.Expands
	waits := storagev1.VolumeBindingWaitForFirstConsumer
	class.VolumeBindingMode = &waits
	class.Parameters = nil
	class.MountOptions = nil
	class.AllowedTopologies = []corev1.TopologySelectorTerm{{
		MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: v1alpha1.LabelClusterID, Values: slices.Compact(ids)}},
	}}
	return class
}

// CanUpdateClass reports whether an update can change one class into the other. The fields that it
// compares are immutable (k8s.io/kubernetes/pkg/apis/storage/validation,
// ValidateStorageClassUpdate).
func CanUpdateClass(before, after *storagev1.StorageClass) bool {
	return before.Provisioner == after.Provisioner && equality.Semantic.DeepEqual(before.Parameters, after.Parameters) &&
		equality.Semantic.DeepEqual(before.ReclaimPolicy, after.ReclaimPolicy) &&
		equality.Semantic.DeepEqual(before.VolumeBindingMode, after.VolumeBindingMode)
}
