package reflection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// MemberClass contains the fields of a member's StorageClass that affect its reflection.
type MemberClass struct {
	Name   string
	Labels map[string]string
	ClassTerms
}

// ClassTerms are the fields on which members must agree to offer the same class.
type ClassTerms struct {
	Policy  corev1.PersistentVolumeReclaimPolicy
	Expands bool
}

func (t ClassTerms) String() string {
	return fmt.Sprintf("reclaimPolicy %s, allowVolumeExpansion %t", t.Policy, t.Expands)
}

// MemberClassOf converts a member's StorageClass. It returns false if the name or the policy is invalid,
// which a correct API server does not allow.
func MemberClassOf(class *storagev1.StorageClass) (MemberClass, bool) {
	c := MemberClass{Name: class.Name, Labels: class.Labels, ClassTerms: classTermsOf(class)}
	known := c.Policy == corev1.PersistentVolumeReclaimDelete || c.Policy == corev1.PersistentVolumeReclaimRetain
	return c, known && len(validation.IsDNS1123Subdomain(c.Name)) == 0
}

func classTermsOf(class *storagev1.StorageClass) ClassTerms {
	return ClassTerms{
		Policy:  ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete), // the API's default
		Expands: ptr.Deref(class.AllowVolumeExpansion, false),
	}
}
