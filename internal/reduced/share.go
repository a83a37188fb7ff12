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

// kept is the maximum number of different maps and affinities that are remembered at a time. When a
// value is dropped, later objects no longer share it.
const kept = 4096

var known = lru.New(kept)

// shared returns the first value seen for the key, which may be this one.
func shared[T any](key string, value T) T {
	if there, ok := known.Get(key); ok {
		if same, ok := there.(T); ok {
			return same
		}
	}
	known.Add(strings.Clone(key), value)
	return value
}

// Text returns an equal string that shares its memory with all other equal strings in use.
func Text(s string) string { return unique.Make(s).Value() }

// Transform is a cache transform (k8s.io/client-go/tools/cache: TransformFunc). It makes claims and
// volumes share equal values, and removes their managed fields. It never fails.
func Transform(obj any) (any, error) {
	switch obj := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		obj.ManagedFields = nil
		Claim(obj)
	case *corev1.PersistentVolume:
		obj.ManagedFields = nil
		Volume(obj)
	}
	return obj, nil
}

// Claim makes a claim share equal values with other objects. Do not modify the claim afterwards.
func Claim(claim *corev1.PersistentVolumeClaim) {
	claim.Labels = sharedMap("labels", claim.Labels)
	claim.Annotations = annotations(claim.Annotations)
	claim.Namespace = Text(claim.Namespace)
	claim.Finalizers = texts(claim.Finalizers)
	claim.Spec.AccessModes = texts(claim.Spec.AccessModes)
	claim.Spec.Resources.Requests = Resources(claim.Spec.Resources.Requests)
	claim.Spec.StorageClassName = pointer("class", claim.Spec.StorageClassName)
	claim.Spec.VolumeMode = pointer("mode", claim.Spec.VolumeMode)
	claim.Status.Phase = corev1.PersistentVolumeClaimPhase(Text(string(claim.Status.Phase)))
	claim.Status.AccessModes = texts(claim.Status.AccessModes)
	claim.Status.Capacity = Resources(claim.Status.Capacity)
}

// Volume makes a PV share equal values with other objects. Do not modify the PV afterwards.
func Volume(pv *corev1.PersistentVolume) {
	pv.Labels = sharedMap("labels", pv.Labels)
	pv.Annotations = annotations(pv.Annotations)
	pv.Finalizers = texts(pv.Finalizers)
	pv.Spec.AccessModes = texts(pv.Spec.AccessModes)
	pv.Spec.Capacity = Resources(pv.Spec.Capacity)
	pv.Spec.StorageClassName = Text(pv.Spec.StorageClassName)
	if csi := pv.Spec.CSI; csi != nil {
		csi.Driver, csi.FSType = Text(csi.Driver), Text(csi.FSType)
		csi.VolumeAttributes = attributes(csi.VolumeAttributes)
	}
	pv.Spec.VolumeMode = pointer("mode", pv.Spec.VolumeMode)
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimPolicy(Text(string(pv.Spec.PersistentVolumeReclaimPolicy)))
	pv.Status.Phase = corev1.PersistentVolumePhase(Text(string(pv.Status.Phase)))
	if pv.Spec.NodeAffinity != nil {
		if encoded, err := pv.Spec.NodeAffinity.Marshal(); err == nil {
			pv.Spec.NodeAffinity = shared("affinity "+string(encoded), pv.Spec.NodeAffinity)
		}
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		ref.Kind, ref.APIVersion, ref.Namespace, ref.ResourceVersion = Text(ref.Kind), Text(ref.APIVersion), Text(ref.Namespace), Text(ref.ResourceVersion)
	}
}

// keyOf returns a key that is the same for equal values of a kind.
func keyOf(kind string, parts ...string) string { return kind + "\x00" + strings.Join(parts, "\x00") }

// pointer shares a pointer to a text.
func pointer[S ~string](kind string, of *S) *S {
	if of == nil {
		return nil
	}
	return shared(keyOf(kind, string(*of)), of)
}

// attributes shares the keys of a volume's attributes. Most values differ for each volume.
func attributes(of map[string]string) map[string]string {
	if len(of) == 0 {
		return of
	}
	slim := make(map[string]string, len(of))
	for key, value := range of {
		if key == v1alpha1.AttributeDriver {
			value = Text(value)
		}
		slim[Text(key)] = value
	}
	return slim
}

func texts[S ~string](values []S) []S {
	if len(values) == 0 {
		return values
	}
	parts := make([]string, len(values))
	for i, value := range values {
		parts[i] = string(value)
	}
	return shared(keyOf("texts", parts...), values)
}

// sharedMap shares a map. Usually, all objects from one source have the same labels.
func sharedMap(kind string, of map[string]string) map[string]string {
	if len(of) == 0 {
		return nil
	}
	parts := make([]string, 0, 2*len(of))
	for _, key := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, key, of[key])
	}
	return shared(keyOf(kind, parts...), of)
}

// own contains the annotations whose values differ for each object.
var own = map[string]bool{v1alpha1.AnnotationRoot: true, v1alpha1.AnnotationRootUID: true, v1alpha1.AnnotationVolumeUID: true}

// shortest is the length from which a value is assumed to be unique to its object. Names and IDs
// that many objects share are usually shorter.
const shortest = 128

// annotations shares the texts of annotations, and the whole map if no value is unique to its object. This is the
// case for most claims in the host.
func annotations(of map[string]string) map[string]string {
	if len(of) == 0 {
		return nil
	}
	slim := make(map[string]string, len(of))
	unique := false
	for key, value := range of {
		if own[key] || len(value) >= shortest {
			unique = true
		} else {
			value = Text(value)
		}
		slim[Text(key)] = value
	}
	if unique {
		return slim
	}
	return sharedMap("annotations", slim)
}

// Resources shares an equal list of quantities.
func Resources(of corev1.ResourceList) corev1.ResourceList {
	if len(of) == 0 {
		return of
	}
	parts := make([]string, 0, 2*len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		amount := of[name]
		parts = append(parts, string(name), amount.String())
	}
	return shared(keyOf("resources", parts...), of)
}
