package reduced

import (
	"maps"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// internedLimit is the maximum number of different maps and affinities that are remembered at a time. When a
// value is dropped, later objects no longer share it.
const internedLimit = 4096

var internedValues = lru.New(internedLimit)

// internValue returns the first value seen for the key, which may be this one.
func internValue[T any](key string, value T) T {
	if there, ok := internedValues.Get(key); ok {
		if same, ok := there.(T); ok {
			return same
		}
	}
	internedValues.Add(strings.Clone(key), value)
	return value
}

// InternText returns an equal string that shares its memory with all other equal strings in use.
func InternText(s string) string { return unique.Make(s).Value() }

// InternTransform is a cache transform (k8s.io/client-go/tools/cache: TransformFunc). It makes claims and
// volumes share equal values, and removes their managed fields. It never fails.
func InternTransform(obj any) (any, error) {
	switch obj := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		obj.ManagedFields = nil
		InternClaim(obj)
	case *corev1.PersistentVolume:
		obj.ManagedFields = nil
		InternVolume(obj)
	}
	return obj, nil
}

// InternClaim makes a claim share equal values with other objects. Do not modify the claim afterwards.
func InternClaim(claim *corev1.PersistentVolumeClaim) {
	claim.Labels = internMap("labels", claim.Labels)
	claim.Annotations = internAnnotations(claim.Annotations)
	claim.Namespace = InternText(claim.Namespace)
	claim.Finalizers = internTexts(claim.Finalizers)
	claim.Spec.AccessModes = internTexts(claim.Spec.AccessModes)
	claim.Spec.Resources.Requests = InternResources(claim.Spec.Resources.Requests)
	claim.Spec.StorageClassName = internPointer("class", claim.Spec.StorageClassName)
	claim.Spec.VolumeMode = internPointer("mode", claim.Spec.VolumeMode)
	claim.Status.Phase = corev1.PersistentVolumeClaimPhase(InternText(string(claim.Status.Phase)))
	claim.Status.AccessModes = internTexts(claim.Status.AccessModes)
	claim.Status.Capacity = InternResources(claim.Status.Capacity)
}

// InternVolume makes a PV share equal values with other objects. Do not modify the PV afterwards.
func InternVolume(pv *corev1.PersistentVolume) {
	pv.Labels = internMap("labels", pv.Labels)
	pv.Annotations = internAnnotations(pv.Annotations)
	pv.Finalizers = internTexts(pv.Finalizers)
	pv.Spec.AccessModes = internTexts(pv.Spec.AccessModes)
	pv.Spec.Capacity = InternResources(pv.Spec.Capacity)
	pv.Spec.StorageClassName = InternText(pv.Spec.StorageClassName)
	if csi := pv.Spec.CSI; csi != nil {
		csi.Driver, csi.FSType = InternText(csi.Driver), InternText(csi.FSType)
		csi.VolumeAttributes = internAttributes(csi.VolumeAttributes)
	}
	pv.Spec.VolumeMode = internPointer("mode", pv.Spec.VolumeMode)
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimPolicy(InternText(string(pv.Spec.PersistentVolumeReclaimPolicy)))
	pv.Status.Phase = corev1.PersistentVolumePhase(InternText(string(pv.Status.Phase)))
	if pv.Spec.NodeAffinity != nil {
		if encoded, err := pv.Spec.NodeAffinity.Marshal(); err == nil {
			pv.Spec.NodeAffinity = internValue("affinity "+string(encoded), pv.Spec.NodeAffinity)
		}
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		ref.Kind, ref.APIVersion, ref.Namespace, ref.ResourceVersion = InternText(ref.Kind), InternText(ref.APIVersion), InternText(ref.Namespace), InternText(ref.ResourceVersion)
	}
}

// internKeyOf returns a key that is the same for equal values of a kind.
func internKeyOf(kind string, parts ...string) string {
	return kind + "\x00" + strings.Join(parts, "\x00")
}

// internPointer shares a pointer to a text.
func internPointer[S ~string](kind string, of *S) *S {
	if of == nil {
		return nil
	}
	return internValue(internKeyOf(kind, string(*of)), of)
}

// internAttributes shares the keys of a volume's attributes. Most values differ for each volume.
func internAttributes(of map[string]string) map[string]string {
	if len(of) == 0 {
		return of
	}
	slim := make(map[string]string, len(of))
	for key, value := range of {
		if key == v1alpha1.AttributeDriver {
			value = InternText(value)
		}
		slim[InternText(key)] = value
	}
	return slim
}

func internTexts[S ~string](values []S) []S {
	if len(values) == 0 {
		return values
	}
	parts := make([]string, len(values))
	for i, value := range values {
		parts[i] = string(value)
	}
	return internValue(internKeyOf("texts", parts...), values)
}

// internMap shares a map. Usually, all objects from one source have the same labels.
func internMap(kind string, of map[string]string) map[string]string {
	if len(of) == 0 {
		return nil
	}
	parts := make([]string, 0, 2*len(of))
	for _, key := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, key, of[key])
	}
	return internValue(internKeyOf(kind, parts...), of)
}

// uniqueAnnotations contains the annotations whose values differ for each object.
var uniqueAnnotations = map[string]bool{v1alpha1.AnnotationRoot: true, v1alpha1.AnnotationRootUID: true, v1alpha1.AnnotationVolumeUID: true}

// minUniqueLength is the length from which a value is assumed to be unique to its object. Names and IDs
// that many objects share are usually shorter.
const minUniqueLength = 128

// internAnnotations shares the texts of annotations, and the whole map if no value is unique to its object. This is the
// case for most claims in the host.
func internAnnotations(of map[string]string) map[string]string {
	if len(of) == 0 {
		return nil
	}
	slim := make(map[string]string, len(of))
	unique := false
	for key, value := range of {
		if uniqueAnnotations[key] || len(value) >= minUniqueLength {
			unique = true
		} else {
			value = InternText(value)
		}
		slim[InternText(key)] = value
	}
	if unique {
		return slim
	}
	return internMap("annotations", slim)
}

// InternResources shares an equal list of quantities.
func InternResources(of corev1.ResourceList) corev1.ResourceList {
	if len(of) == 0 {
		return of
	}
	parts := make([]string, 0, 2*len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		amount := of[name]
		parts = append(parts, string(name), amount.String())
	}
	return internValue(internKeyOf("resources", parts...), of)
}
