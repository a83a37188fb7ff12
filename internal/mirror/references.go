package mirror

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Kinds of References.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Reference is an object of the Pod's namespace that its leaf needs.
type Reference struct {
	Kind string
	Name string
	// Optional: the Pod also runs without it.
	Optional bool
}

// References are the ConfigMaps and Secrets that the leaf of a root Pod needs,
// each once, by kind and name; one that is needed somewhere and optional
// elsewhere is needed. What translation drops needs nothing, and the member's
// own kube-root-ca.crt is not the host's to bring.
func References(pod *corev1.Pod) []Reference {
	r := references{}
	for _, s := range pod.Spec.ImagePullSecrets {
		// The kubelet tries to pull without the missing ones.
		r.add(KindSecret, s.Name, true)
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			r.container(&containers[i])
		}
	}
	for i := range pod.Spec.Volumes {
		if !isTokenVolume(pod.Spec.Volumes[i]) {
			r.volume(&pod.Spec.Volumes[i].VolumeSource)
		}
	}
	return r.sorted()
}

// references maps kind and name to whether it is optional.
type references map[[2]string]bool

func (r references) add(kind, name string, optional bool) {
	// A name that none can have is no reason to hold the Pod up, and is asked of
	// nobody: the member's kubelet says what it thinks of it.
	if len(validation.IsDNS1123Subdomain(name)) > 0 || kind == KindConfigMap && name == rootCAConfigMap {
		return
	}
	key := [2]string{kind, name}
	known, ok := r[key]
	r[key] = optional && (known || !ok)
}

func (r references) container(c *corev1.Container) {
	for _, e := range c.EnvFrom {
		if ref := e.ConfigMapRef; ref != nil {
			r.add(KindConfigMap, ref.Name, isTrue(ref.Optional))
		}
		if ref := e.SecretRef; ref != nil {
			r.add(KindSecret, ref.Name, isTrue(ref.Optional))
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			r.add(KindConfigMap, ref.Name, isTrue(ref.Optional))
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			r.add(KindSecret, ref.Name, isTrue(ref.Optional))
		}
	}
}

func (r references) volume(v *corev1.VolumeSource) {
	switch {
	case v.ConfigMap != nil:
		r.add(KindConfigMap, v.ConfigMap.Name, isTrue(v.ConfigMap.Optional))
	case v.Secret != nil:
		r.add(KindSecret, v.Secret.SecretName, isTrue(v.Secret.Optional))
	case v.ISCSI != nil && v.ISCSI.SecretRef != nil:
		r.add(KindSecret, v.ISCSI.SecretRef.Name, false)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				r.add(KindConfigMap, s.ConfigMap.Name, isTrue(s.ConfigMap.Optional))
			}
			if s.Secret != nil {
				r.add(KindSecret, s.Secret.Name, isTrue(s.Secret.Optional))
			}
		}
	}
}

func (r references) sorted() []Reference {
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
