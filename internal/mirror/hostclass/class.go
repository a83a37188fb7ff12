package hostclass

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/text"
)

// Class contains Xylem's parameters of a host StorageClass.
type Class struct {
	// Provisioning is v1alpha1.ProvisioningMirror or ProvisioningPromise.
	Provisioning string
	// Release is v1alpha1.ReleaseOnClaimDeletion or ReleaseWhenUnused.
	Release string
	// ReleaseGrace is how long Xylem keeps a disk after its last Pod if Release is
	// ReleaseWhenUnused.
	ReleaseGrace time.Duration
	// PlacementTimeout is how long a member may fail to satisfy a claim before Xylem reassigns it.
	PlacementTimeout time.Duration
}

// Defaults and limits of a class's durations. A Pod is usually re-created within a few seconds, and
// its disk must still exist. A claim that could not be satisfied within a minute is unlikely to
// be satisfied soon.
const (
	DefaultReleaseGrace     = 30 * time.Second
	DefaultPlacementTimeout = 60 * time.Second
	minPlacementTimeout     = time.Second
	maxDuration             = 24 * time.Hour
)

// Read reads Xylem's parameters of a host StorageClass, with defaults. It ignores other parameters,
// because those of the member's class apply. The error, if any, is a *Refusal that names the
// invalid parameters.
func Read(class *storagev1.StorageClass) (Class, error) {
	c := Class{
		Provisioning: v1alpha1.ProvisioningMirror, Release: v1alpha1.ReleaseOnClaimDeletion,
		ReleaseGrace: DefaultReleaseGrace, PlacementTimeout: DefaultPlacementTimeout,
	}
	var wrong []string
	for key, value := range class.Parameters {
		read, known := parameters[key]
		switch {
		case known:
			if want := read(value, &c); want != "" {
				wrong = append(wrong, fmt.Sprintf("%s is %q, but must be %s", key, value, want))
			}
		case v1alpha1.Reserved(key):
			wrong = append(wrong, unknownParameter(key))
		}
	}
	if c.Release == v1alpha1.ReleaseWhenUnused && c.Provisioning != v1alpha1.ProvisioningPromise {
		wrong = append(wrong, fmt.Sprintf("%s %s requires %s %s", v1alpha1.ParameterRelease, c.Release,
			v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningPromise))
	}
	if c.Release == v1alpha1.ReleaseWhenUnused && ReclaimPolicy(class) == corev1.PersistentVolumeReclaimRetain {
		wrong = append(wrong, fmt.Sprintf("%s %s requires reclaimPolicy Delete, because a retained disk is never released", v1alpha1.ParameterRelease, c.Release))
	}
	if _, set := class.Parameters[v1alpha1.ParameterReleaseGrace]; set && c.Release != v1alpha1.ReleaseWhenUnused {
		wrong = append(wrong, fmt.Sprintf("%s requires %s %s", v1alpha1.ParameterReleaseGrace, v1alpha1.ParameterRelease, v1alpha1.ReleaseWhenUnused))
	}
	if len(wrong) == 0 {
		return c, nil
	}
	slices.Sort(wrong)
	return Class{}, &mirror.Refusal{
		Reason: v1alpha1.ReasonClassInvalid,
		Message: fmt.Sprintf("StorageClass %q has parameters that Xylem cannot use: %s. Delete the class and create it again with valid parameters, because parameters cannot be changed",
			class.Name, strings.Join(wrong, "; ")),
	}
}

// unknownParameter reports an unknown parameter, and suggests the nearest known one.
func unknownParameter(key string) string {
	known := slices.Sorted(maps.Keys(parameters))
	if nearest := text.Nearest(key, known); nearest != "" {
		return fmt.Sprintf("%q is unknown (did you mean %q?)", key, nearest)
	}
	return fmt.Sprintf("%q is unknown (the known parameters are %s)", key, strings.Join(known, ", "))
}

// parameters maps each of Xylem's parameters to a function that sets a field of Class, or returns a
// description of the valid values.
var parameters = map[string]func(value string, into *Class) (want string){
	v1alpha1.ParameterProvisioning: func(value string, c *Class) string {
		return oneOf(value, &c.Provisioning, v1alpha1.ProvisioningMirror, v1alpha1.ProvisioningPromise)
	},
	v1alpha1.ParameterMemberClass: func(value string, _ *Class) string {
		if len(validation.IsDNS1123Subdomain(value)) > 0 {
			return "a valid class name, or be omitted"
		}
		return ""
	},
	v1alpha1.ParameterRelease: func(value string, c *Class) string {
		return oneOf(value, &c.Release, v1alpha1.ReleaseOnClaimDeletion, v1alpha1.ReleaseWhenUnused)
	},
	v1alpha1.ParameterReleaseGrace: func(value string, c *Class) string {
		return between(value, &c.ReleaseGrace, 0, "5m")
	},
	v1alpha1.ParameterPlacementTimeout: func(value string, c *Class) string {
		return between(value, &c.PlacementTimeout, minPlacementTimeout, "90s")
	},
}

// between parses a duration that must be from low to maxDuration.
func between(value string, into *time.Duration, low time.Duration, such string) string {
	d, err := time.ParseDuration(value)
	if err != nil || d < low || d > maxDuration {
		return fmt.Sprintf("a duration from %s to %s, such as %s", low, maxDuration, such)
	}
	*into = d
	return ""
}

// oneOf accepts one of two values.
func oneOf(value string, into *string, first, second string) string {
	if value != first && value != second {
		return first + " or " + second
	}
	*into = value
	return ""
}

// NameOf returns the name of a claim's class in its own cluster, or "". As everywhere in
// Kubernetes, the old annotation takes precedence over the field, so that quotas count the class
// that is provisioned.
func NameOf(claim *corev1.PersistentVolumeClaim) string {
	if name, found := claim.Annotations[corev1.BetaStorageClassAnnotation]; found {
		return name
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

// NamedOnlyByAnnotation reports whether only the old annotation names a claim's class. kube-scheduler
// 1.37 panics when it scores nodes for such a claim. The policy xylem-claim-classes rejects new ones.
func NamedOnlyByAnnotation(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.StorageClassName == nil && NameOf(claim) != ""
}

// NameInField returns the command that sets the field of a claim whose class only the old annotation
// names. Kubernetes allows this change of an existing claim.
func NameInField(namespace, claim, class string) string {
	return fmt.Sprintf(`kubectl patch persistentvolumeclaim %s -n %s -p '{"spec":{"storageClassName":"%s"}}'`, claim, namespace, class)
}

// Own reports whether Xylem provisions the volumes of a host class. It returns false for nil.
func Own(class *storagev1.StorageClass) bool {
	return class != nil && class.Provisioner == v1alpha1.ProvisionerName
}

// WaitsForConsumer reports whether a StorageClass of the host, or of a member, has binding mode
// WaitForFirstConsumer.
func WaitsForConsumer(class *storagev1.StorageClass) bool {
	return ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer
}

// Mirrors reports whether a host class is valid, belongs to Xylem, and is in mirror mode.
func Mirrors(class *storagev1.StorageClass) bool {
	if !Own(class) {
		return false
	}
	c, err := Read(class)
	return err == nil && c.Provisioning == v1alpha1.ProvisioningMirror
}

// ReclaimPolicy returns the policy of a class. The API defaults it to Delete.
func ReclaimPolicy(class *storagev1.StorageClass) corev1.PersistentVolumeReclaimPolicy {
	if class.ReclaimPolicy == nil {
		return corev1.PersistentVolumeReclaimDelete
	}
	return *class.ReclaimPolicy
}
