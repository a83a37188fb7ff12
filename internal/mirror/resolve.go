package mirror

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// MemberClass is the member's class for claims of a host class, and by which
// rule, in words for messages. The first that applies:
//
//  1. the registration's exact rule for the host class (spec.storage.classes),
//  2. the host class's parameter xylem.io/member-class,
//  3. the registration's prefix (spec.storage.prefix): the name without it,
//  4. the same name.
//
// All of these are an admin's to write, and nothing else is looked at: who makes
// a claim chooses among the host's classes, never among the member's.
func MemberClass(hostClass *storagev1.StorageClass, m Member) (name, rule string) {
	if name := m.Classes[hostClass.Name]; name != "" {
		return name, fmt.Sprintf("rule in storage.classes of ClusterRegistration %s", m.Registration)
	}
	if name := hostClass.Parameters[v1alpha1.ParameterMemberClass]; name != "" {
		return name, fmt.Sprintf("parameter %s of StorageClass %s", v1alpha1.ParameterMemberClass, hostClass.Name)
	}
	if name, found := strings.CutPrefix(hostClass.Name, m.ClassPrefix); found && m.ClassPrefix != "" && isClassName(name) {
		return name, fmt.Sprintf("prefix %s in ClusterRegistration %s", m.ClassPrefix, m.Registration)
	}
	return hostClass.Name, "the same name"
}

// WithClassRules is a member with the rules of its registration.
func WithClassRules(m Member, storage v1alpha1.StorageSpec) Member {
	m.Classes = make(map[string]string, len(storage.Classes))
	for _, rule := range storage.Classes {
		m.Classes[rule.Host] = rule.Member
	}
	m.ClassPrefix = v1alpha1.DefaultClassPrefix
	if storage.Prefix != nil {
		m.ClassPrefix = *storage.Prefix
	}
	return m
}

// Admits reports whether a host class's allowedTopologies let Pods go to a member,
// by the one label that they can tell members by for certain.
func Admits(hostClass *storagev1.StorageClass, clusterID string) bool {
	if len(hostClass.AllowedTopologies) == 0 {
		return true
	}
	return slices.ContainsFunc(hostClass.AllowedTopologies, func(term corev1.TopologySelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchLabelExpressions, func(e corev1.TopologySelectorLabelRequirement) bool {
			return e.Key == v1alpha1.LabelClusterID && !slices.Contains(e.Values, clusterID)
		})
	})
}

// ClassName is the name of a claim's class in its own cluster, empty if it has
// none. The annotation from before claims had a field for it wins, as everywhere
// in Kubernetes: what quota is counted for has to be what is made.
func ClassName(claim *corev1.PersistentVolumeClaim) string {
	if name, found := claim.Annotations[corev1.BetaStorageClassAnnotation]; found {
		return name
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

func isClassName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
