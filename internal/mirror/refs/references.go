package refs

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// Kinds of References.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Reference names a ConfigMap or Secret in the Pod's namespace that the leaf Pod needs.
type Reference struct {
	Kind string
	Name string
	// Optional reports whether the Pod can run without the object.
	Optional bool
}

// ReferenceLimit is the maximum number of ConfigMaps and Secrets, and of claims, of a Pod that Xylem pushes.
// Without a limit, a tenant's few Pods would occupy all workers of a member's controllers.
const ReferenceLimit = 500

// ReferencesOfPod returns the ConfigMaps and Secrets that a root Pod's leaf needs, each once, sorted by kind and
// name. An object is optional only if every reference to it is optional. It skips references that
// translation drops, and kube-root-ca.crt, which every member has.
func ReferencesOfPod(pod *corev1.Pod) []Reference {
	all, _ := referencesUpTo(math.MaxInt, pod)
	return all
}

// BoundedReferencesOf is ReferencesOfPod for a Pod that may have any number of references. It returns false if their number
// exceeds ReferenceLimit. Then Xylem follows none of them.
func BoundedReferencesOf(pod *corev1.Pod) ([]Reference, bool) {
	return referencesUpTo(ReferenceLimit, pod)
}

func referencesUpTo(limit int, pod *corev1.Pod) ([]Reference, bool) {
	r := referenceSet{}
	visitReferences(&pod.Spec, func(kind string, name *string, optional bool) {
		if len(r) > limit {
			return
		}
		key := [2]string{kind, *name}
		known, ok := r[key]
		if ok || isReferenceFollowed(kind, *name) {
			r[key] = optional && (known || !ok)
		}
	})
	if len(r) > limit {
		return nil, false
	}
	return r.sortedReferences(), true
}

// HasTooManyReferences reports whether a Pod has so many references to ConfigMaps and Secrets, or so many claims,
// that Xylem does not push it.
func HasTooManyReferences(pod *corev1.Pod) bool {
	_, bounded := BoundedReferencesOf(pod)
	return !bounded || len(podspec.ClaimNamesOfPod(pod)) > ReferenceLimit
}

// FindReference returns a Pod's reference to an object, and whether it has one. It is faster than ReferencesOfPod.
func FindReference(pod *corev1.Pod, kind, name string) (Reference, bool) {
	found := Reference{Kind: kind, Name: name, Optional: true}
	has := false
	visitReferences(&pod.Spec, func(k string, n *string, optional bool) {
		if k == kind && *n == name {
			has, found.Optional = true, found.Optional && optional
		}
	})
	return found, has && isReferenceFollowed(kind, name)
}

// referenceSet maps the kind and name of an object to whether it is optional.
type referenceSet map[[2]string]bool

// referenceVisitor receives a pointer to the name of each reference.
type referenceVisitor func(kind string, name *string, optional bool)

// isReferenceFollowed reports whether Xylem follows a reference. It skips invalid names, because they do not delay
// the Pod: Xylem never looks them up, and the member's kubelet reports them. It also skips
// kube-root-ca.crt.
func isReferenceFollowed(kind, name string) bool {
	return (kind != KindConfigMap || name != podspec.RootCAConfigMap) && len(validation.IsDNS1123Subdomain(name)) == 0
}

// visitReferences visits the names in all of a Pod's references to ConfigMaps and Secrets.
func visitReferences(spec *corev1.PodSpec, visit referenceVisitor) {
	for i := range spec.ImagePullSecrets {
		// If a Secret is missing, the kubelet tries to pull the images without it.
		visit(KindSecret, &spec.ImagePullSecrets[i].Name, true)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			visitContainerReferences(&containers[i], visit)
		}
	}
	for i := range spec.EphemeralContainers {
		// Ephemeral containers are added later, and do not delay the Pod.
		visitContainerReferences((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon), func(kind string, name *string, _ bool) { visit(kind, name, true) })
	}
	for i := range spec.Volumes {
		if !podspec.IsTokenVolume(spec.Volumes[i]) {
			visitVolumeReferences(&spec.Volumes[i].VolumeSource, visit)
		}
	}
}

func visitContainerReferences(c *corev1.Container, visit referenceVisitor) {
	for i := range c.EnvFrom {
		if ref := c.EnvFrom[i].ConfigMapRef; ref != nil {
			visit(KindConfigMap, &ref.Name, isTrue(ref.Optional))
		}
		if ref := c.EnvFrom[i].SecretRef; ref != nil {
			visit(KindSecret, &ref.Name, isTrue(ref.Optional))
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from == nil {
			continue
		}
		if ref := from.ConfigMapKeyRef; ref != nil {
			visit(KindConfigMap, &ref.Name, isTrue(ref.Optional))
		}
		if ref := from.SecretKeyRef; ref != nil {
			visit(KindSecret, &ref.Name, isTrue(ref.Optional))
		}
	}
}

func visitVolumeReferences(v *corev1.VolumeSource, visit referenceVisitor) {
	switch {
	case v.ConfigMap != nil:
		visit(KindConfigMap, &v.ConfigMap.Name, isTrue(v.ConfigMap.Optional))
	case v.Secret != nil:
		visit(KindSecret, &v.Secret.SecretName, isTrue(v.Secret.Optional))
	case v.ISCSI != nil && v.ISCSI.SecretRef != nil:
		visit(KindSecret, &v.ISCSI.SecretRef.Name, false)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			s := &v.Projected.Sources[i]
			if s.ConfigMap != nil {
				visit(KindConfigMap, &s.ConfigMap.Name, isTrue(s.ConfigMap.Optional))
			}
			if s.Secret != nil {
				visit(KindSecret, &s.Secret.Name, isTrue(s.Secret.Optional))
			}
		}
	}
}

func (r referenceSet) sortedReferences() []Reference {
	refs := make([]Reference, 0, len(r))
	for key, optional := range r {
		refs = append(refs, Reference{Kind: key[0], Name: key[1], Optional: optional})
	}
	slices.SortFunc(refs, func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return refs
}

func isTrue(p *bool) bool { return p != nil && *p }

// PointAtCopies makes a translated Pod refer to the copies of the objects that its root refers to. So
// the Pod never refers to a ConfigMap or Secret in the member, except kube-root-ca.crt and the Secret with its own tokens.
func PointAtCopies(copies mirror.ConfigCopies, leaf *corev1.Pod) {
	tokens := mirror.TokenSecretName(mirror.StampedRootUID(leaf))
	visitReferences(&leaf.Spec, func(kind string, name *string, _ bool) {
		if isReferenceFollowed(kind, *name) && (kind != KindSecret || *name != tokens) {
			*name = copies.NameOfCopy(*name)
		}
	})
}
