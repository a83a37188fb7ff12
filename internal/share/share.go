package share

import (
	"maps"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// kept bounds how many different maps and affinities are known at a time: members,
// sizes of volumes. Whatever is forgotten is shared with later ones no more.
const kept = 4096

var known = lru.New(kept)

// shared is the first value of this key that was seen, or this one.
func shared[T any](key string, value T) T {
	if there, ok := known.Get(key); ok {
		if same, ok := there.(T); ok {
			return same
		}
	}
	known.Add(strings.Clone(key), value)
	return value
}

// Text is a string that equal ones have in common, as long as any of them is in use.
func Text(s string) string { return unique.Make(s).Value() }

// Transform is of a cache (k8s.io/client-go/tools/cache: TransformFunc): claims and
// volumes share what they have alike, and lose their managed fields. It never fails.
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

// Claim shares what a claim has alike with others. It may be written to until then
// only.
func Claim(claim *corev1.PersistentVolumeClaim) {
	claim.Labels = labels(claim.Labels)
	claim.Annotations = annotations(claim.Annotations)
	claim.Namespace = Text(claim.Namespace)
	claim.Finalizers = texts(claim.Finalizers)
	claim.Spec.AccessModes = texts(claim.Spec.AccessModes)
	claim.Spec.Resources.Requests = resources(claim.Spec.Resources.Requests)
	if class := claim.Spec.StorageClassName; class != nil {
		*class = Text(*class)
	}
	claim.Status.AccessModes = texts(claim.Status.AccessModes)
	claim.Status.Capacity = resources(claim.Status.Capacity)
}

// Volume shares what a PV has alike with others. It may be written to until then only.
func Volume(pv *corev1.PersistentVolume) {
	pv.Labels = labels(pv.Labels)
	pv.Annotations = annotations(pv.Annotations)
	pv.Finalizers = texts(pv.Finalizers)
	pv.Spec.AccessModes = texts(pv.Spec.AccessModes)
	pv.Spec.Capacity = resources(pv.Spec.Capacity)
	pv.Spec.StorageClassName = Text(pv.Spec.StorageClassName)
	if csi := pv.Spec.CSI; csi != nil {
		csi.Driver, csi.FSType = Text(csi.Driver), Text(csi.FSType)
	}
	if pv.Spec.NodeAffinity != nil {
		if encoded, err := pv.Spec.NodeAffinity.Marshal(); err == nil {
			pv.Spec.NodeAffinity = shared("affinity "+string(encoded), pv.Spec.NodeAffinity)
		}
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		ref.Kind, ref.APIVersion, ref.Namespace, ref.ResourceVersion = Text(ref.Kind), Text(ref.APIVersion), Text(ref.Namespace), Text(ref.ResourceVersion)
	}
}

// keyOf is what equal values of a kind have in common.
func keyOf(kind string, parts ...string) string { return kind + "\x00" + strings.Join(parts, "\x00") }

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

// labels are the same for all objects of one origin, as a rule.
func labels(of map[string]string) map[string]string {
	if len(of) == 0 {
		return nil
	}
	parts := make([]string, 0, 2*len(of))
	for _, key := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, key, of[key])
	}
	return shared(keyOf("labels", parts...), of)
}

// own are annotations whose values are another for each object.
var own = map[string]bool{v1alpha1.AnnotationRoot: true, v1alpha1.AnnotationRootUID: true, v1alpha1.AnnotationVolumeUID: true}

// shortest is the length from which a value is assumed to be unique to its object: the names
// and IDs that many have are shorter.
const shortest = 128

func annotations(of map[string]string) map[string]string {
	if len(of) == 0 {
		return nil
	}
	slim := make(map[string]string, len(of))
	for key, value := range of {
		if !own[key] && len(value) < shortest {
			value = Text(value)
		}
		slim[Text(key)] = value
	}
	return slim
}

func resources(of corev1.ResourceList) corev1.ResourceList {
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
