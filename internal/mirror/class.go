package mirror

import (
	"fmt"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Class is what a host StorageClass tells Xylem by its parameters.
type Class struct {
	// Provisioning is v1alpha1.ProvisioningMirror or ProvisioningPromise.
	Provisioning string
	// MemberClass is the class in every member that has no rule of its own;
	// empty if the class does not say.
	MemberClass string
	// Release is v1alpha1.ReleaseOnClaimDeletion or ReleaseWhenUnused.
	Release string
}

// ReadClass reads Xylem's parameters of a host StorageClass, with defaults.
// Parameters that are not Xylem's are not looked at: they stand in the member's
// class. The error, if any, is a *Refusal that names what is unknown.
func ReadClass(class *storagev1.StorageClass) (Class, error) {
	c := Class{Provisioning: v1alpha1.ProvisioningMirror, Release: v1alpha1.ReleaseOnClaimDeletion}
	var wrong []string
	for key, value := range class.Parameters {
		switch {
		case key == v1alpha1.ParameterMemberClass && value != "":
			c.MemberClass = value
		case key == v1alpha1.ParameterProvisioning && oneOf(value, v1alpha1.ProvisioningMirror, v1alpha1.ProvisioningPromise):
			c.Provisioning = value
		case key == v1alpha1.ParameterRelease && oneOf(value, v1alpha1.ReleaseOnClaimDeletion, v1alpha1.ReleaseWhenUnused):
			c.Release = value
		case key == v1alpha1.ParameterMemberClass:
			wrong = append(wrong, key+" is empty; name a class of the members, or leave it out")
		case key == v1alpha1.ParameterProvisioning:
			wrong = append(wrong, fmt.Sprintf("%s is %q; it is %s or %s", key, value, v1alpha1.ProvisioningMirror, v1alpha1.ProvisioningPromise))
		case key == v1alpha1.ParameterRelease:
			wrong = append(wrong, fmt.Sprintf("%s is %q; it is %s or %s", key, value, v1alpha1.ReleaseOnClaimDeletion, v1alpha1.ReleaseWhenUnused))
		case v1alpha1.Reserved(key):
			wrong = append(wrong, key+" is no parameter that Xylem knows")
		}
	}
	if c.Release == v1alpha1.ReleaseWhenUnused && c.Provisioning != v1alpha1.ProvisioningPromise {
		wrong = append(wrong, fmt.Sprintf("%s %s goes with %s %s only", v1alpha1.ParameterRelease, c.Release,
			v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningPromise))
	}
	if len(wrong) == 0 {
		return c, nil
	}
	slices.Sort(wrong)
	return Class{}, &Refusal{
		Reason: ReasonClassInvalid,
		Message: fmt.Sprintf("StorageClass %s has parameters that Xylem cannot follow (parameters cannot be changed: delete the class and make it anew): %s",
			class.Name, strings.Join(wrong, "; ")),
	}
}

func oneOf(value string, values ...string) bool { return slices.Contains(values, value) }

// MemberClass is the member's class for claims of a host class, and by which
// rule, in words for messages: the registration's exact rule, else the class
// parameter xylem.io/member-class, else the class of the same name.
func MemberClass(hostClass *storagev1.StorageClass, m Member) (name, rule string) {
	if name := m.Classes[hostClass.Name]; name != "" {
		return name, fmt.Sprintf("rule in storage.classes of ClusterRegistration %s", m.Registration)
	}
	if name := hostClass.Parameters[v1alpha1.ParameterMemberClass]; name != "" {
		return name, fmt.Sprintf("parameter %s of StorageClass %s", v1alpha1.ParameterMemberClass, hostClass.Name)
	}
	return hostClass.Name, "the same name"
}
