package hostpv

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
	"github.com/xylem-io/xylem/internal/wording"
)

// ClassParameters contains Xylem's parameters of a host StorageClass.
type ClassParameters struct {
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

// ReadClassParameters reads Xylem's parameters of a host StorageClass, with defaults. It ignores other parameters,
// because those of the member's class apply. The error, if any, is a *Refusal that names the
// invalid parameters.
func ReadClassParameters(class *storagev1.StorageClass) (ClassParameters, error) {
	c := ClassParameters{
		Provisioning: v1alpha1.ProvisioningMirror, Release: v1alpha1.ReleaseOnClaimDeletion,
		ReleaseGrace: DefaultReleaseGrace, PlacementTimeout: DefaultPlacementTimeout,
	}
	var wrong []string
	for key, value := range class.Parameters {
		read, known := parameterParsers[key]
		switch {
		case known:
			if want := read(value, &c); want != "" {
				wrong = append(wrong, fmt.Sprintf("%s is %q, but must be %s", key, value, want))
			}
		case v1alpha1.Reserved(key):
			wrong = append(wrong, unknownParameterMessage(key))
		}
	}
	if c.Release == v1alpha1.ReleaseWhenUnused && c.Provisioning != v1alpha1.ProvisioningPromise {
		wrong = append(wrong, fmt.Sprintf("%s %s requires %s %s", v1alpha1.ParameterRelease, c.Release,
			v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningPromise))
	}
	if c.Release == v1alpha1.ReleaseWhenUnused && ClassReclaimPolicy(class) == corev1.PersistentVolumeReclaimRetain {
		wrong = append(wrong, fmt.Sprintf("%s %s requires reclaimPolicy Delete, because a retained disk is never released", v1alpha1.ParameterRelease, c.Release))
	}
	if _, set := class.Parameters[v1alpha1.ParameterReleaseGrace]; set && c.Release != v1alpha1.ReleaseWhenUnused {
		wrong = append(wrong, fmt.Sprintf("%s requires %s %s", v1alpha1.ParameterReleaseGrace, v1alpha1.ParameterRelease, v1alpha1.ReleaseWhenUnused))
	}
	if len(wrong) == 0 {
		return c, nil
	}
	slices.Sort(wrong)
	return ClassParameters{}, &mirror.Refusal{
		Reason: v1alpha1.ReasonClassInvalid,
		Message: fmt.Sprintf("StorageClass %q has parameters that Xylem cannot use: %s. Delete the class and create it again with valid parameters, because parameters cannot be changed",
			class.Name, strings.Join(wrong, "; ")),
	}
}

// unknownParameterMessage reports an unknown parameter, and suggests the nearest known one.
func unknownParameterMessage(key string) string {
	known := slices.Sorted(maps.Keys(parameterParsers))
	if nearest := wording.NearestWord(key, known); nearest != "" {
		return fmt.Sprintf("%q is unknown (did you mean %q?)", key, nearest)
	}
	return fmt.Sprintf("%q is unknown (the known parameters are %s)", key, strings.Join(known, ", "))
}

// parameterParsers maps each of Xylem's parameters to a function that sets a field of ClassParameters, or returns a
// description of the valid values.
var parameterParsers = map[string]func(value string, into *ClassParameters) (want string){
	v1alpha1.ParameterProvisioning: func(value string, c *ClassParameters) string {
		return parseChoiceParameter(value, &c.Provisioning, v1alpha1.ProvisioningMirror, v1alpha1.ProvisioningPromise)
	},
	v1alpha1.ParameterMemberClass: func(value string, _ *ClassParameters) string {
		if len(validation.IsDNS1123Subdomain(value)) > 0 {
			return "a valid class name, or be omitted"
		}
		return ""
	},
	v1alpha1.ParameterRelease: func(value string, c *ClassParameters) string {
		return parseChoiceParameter(value, &c.Release, v1alpha1.ReleaseOnClaimDeletion, v1alpha1.ReleaseWhenUnused)
	},
	v1alpha1.ParameterReleaseGrace: func(value string, c *ClassParameters) string {
		return parseDurationParameter(value, &c.ReleaseGrace, 0, "5m")
	},
	v1alpha1.ParameterPlacementTimeout: func(value string, c *ClassParameters) string {
		return parseDurationParameter(value, &c.PlacementTimeout, minPlacementTimeout, "90s")
	},
}

// parseDurationParameter parses a duration that must be from low to maxDuration.
func parseDurationParameter(value string, into *time.Duration, low time.Duration, such string) string {
	d, err := time.ParseDuration(value)
	if err != nil || d < low || d > maxDuration {
		return fmt.Sprintf("a duration from %s to %s, such as %s", low, maxDuration, such)
	}
	*into = d
	return ""
}

// parseChoiceParameter accepts one of two values.
func parseChoiceParameter(value string, into *string, first, second string) string {
	if value != first && value != second {
		return first + " or " + second
	}
	*into = value
	return ""
}

// ClassNameOf returns the name of a claim's class in its own cluster, or "". As everywhere in
// Kubernetes, the old annotation takes precedence over the field, so that quotas count the class
// that is provisioned.
func ClassNameOf(claim *corev1.PersistentVolumeClaim) string {
	if name, found := claim.Annotations[corev1.BetaStorageClassAnnotation]; found {
		return name
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

// IsClassNamedOnlyByAnnotation reports whether only the old annotation names a claim's class. kube-scheduler
// 1.37 panics when it scores nodes for such a claim. The policy xylem-claim-classes rejects new ones.
func IsClassNamedOnlyByAnnotation(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.StorageClassName == nil && ClassNameOf(claim) != ""
}

// SetClassFieldCommand returns the command that sets the field of a claim whose class only the old annotation
// names. Kubernetes allows this change of an existing claim.
func SetClassFieldCommand(namespace, claim, class string) string {
	return fmt.Sprintf(`kubectl patch persistentvolumeclaim %s -n %s -p '{"spec":{"storageClassName":"%s"}}'`, claim, namespace, class)
}

// IsXylemClass reports whether Xylem provisions the volumes of a host class. It returns false for nil.
func IsXylemClass(class *storagev1.StorageClass) bool {
	return class != nil && class.Provisioner == v1alpha1.ProvisionerName
}

// WaitsForConsumer reports whether a StorageClass of the host, or of a member, has binding mode
// WaitForFirstConsumer.
func WaitsForConsumer(class *storagev1.StorageClass) bool {
	return ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer
}

// IsMirrorClass reports whether a host class is valid, belongs to Xylem, and is in mirror mode.
func IsMirrorClass(class *storagev1.StorageClass) bool {
	if !IsXylemClass(class) {
		return false
	}
	c, err := ReadClassParameters(class)
	return err == nil && c.Provisioning == v1alpha1.ProvisioningMirror
}

// ClassReclaimPolicy returns the policy of a class. The API defaults it to Delete.
func ClassReclaimPolicy(class *storagev1.StorageClass) corev1.PersistentVolumeReclaimPolicy {
	if class.ReclaimPolicy == nil {
		return corev1.PersistentVolumeReclaimDelete
	}
	return *class.ReclaimPolicy
}
