package podspec

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// pushed is the push record, which contains what Xylem pushed. Maps contain digests of the values.
type pushed struct {
	fields.PushedMeta
	Images         map[string]string `json:"images,omitempty"`
	InitImages     map[string]string `json:"initImages,omitempty"`
	ActiveDeadline *int64            `json:"activeDeadlineSeconds,omitempty"`
	Tolerations    string            `json:"tolerations,omitempty"`
	Resources      string            `json:"resources,omitempty"`
}

// recordPush adds the push record to a translated Pod, before it gets its origin.
func recordPush(leaf *corev1.Pod) {
	record := pushed{
		PushedMeta:     fields.PushedMetaOf(leaf.ObjectMeta),
		Images:         fields.Digests(images(leaf.Spec.Containers)),
		InitImages:     fields.Digests(images(leaf.Spec.InitContainers)),
		ActiveDeadline: leaf.Spec.ActiveDeadlineSeconds,
		Resources:      ResourcesDigest(leaf),
	}
	if len(leaf.Spec.Tolerations) > 0 {
		record.Tolerations = fields.Digest(leaf.Spec.Tolerations)
	}
	leaf.Annotations[v1alpha1.AnnotationPushed] = string(fields.MustJSON(record))
}

func recordOf(leaf *corev1.Pod) pushed {
	var record pushed
	if json.Unmarshal([]byte(leaf.Annotations[v1alpha1.AnnotationPushed]), &record) != nil {
		// Xylem did not write this value, so do not remove anything because of it.
		return pushed{}
	}
	return record
}

// Drift contains the changes that a leaf Pod needs because its root has changed.
type Drift struct {
	fields.MetaDrift
	// Images and InitImages are the images to set, by container name.
	Images, InitImages map[string]string
	// ActiveDeadlineSeconds is the value to set, or nil.
	ActiveDeadlineSeconds *int64
	// Tolerations is the leaf's complete new list, if any must be added.
	Tolerations []corev1.Toleration
}

// Empty reports whether no change is needed.
func (d Drift) Empty() bool { return d.MetaDrift.Empty() && !d.SpecChanged() }

// SpecChanged reports whether the spec must change.
func (d Drift) SpecChanged() bool {
	return len(d.Images) > 0 || len(d.InitImages) > 0 || d.ActiveDeadlineSeconds != nil || d.Tolerations != nil
}

// LeafDrift compares the leaf with its root, in the mutable fields: labels, annotations,
// images, the active deadline, and additional tolerations. A field drifts if the root changed
// it after the push and the leaf still differs. Keys that were never pushed belong to the
// member. A leaf of another origin does not drift, because Xylem must not change it.
func LeafDrift(root, leaf *corev1.Pod, m mirror.Member) Drift {
	if origin, ok := mirror.OriginIn(m.HostID, leaf); !ok || origin != mirror.OriginFor(m.HostID, root) {
		return Drift{}
	}
	want, refused := translate(root, m)
	if len(refused) > 0 {
		// Refused fields are immutable, so a root that has a leaf cannot set any of them.
		return Drift{}
	}
	was, is := recordOf(leaf), recordOf(want)
	d := Drift{
		MetaDrift:  fields.DriftOfMeta(want.ObjectMeta, leaf.ObjectMeta, is.PushedMeta, was.PushedMeta),
		Images:     imageDrift(want.Spec.Containers, leaf.Spec.Containers, is.Images, was.Images),
		InitImages: imageDrift(want.Spec.InitContainers, leaf.Spec.InitContainers, is.InitImages, was.InitImages),
	}
	if now := is.ActiveDeadline; now != nil && !equality.Semantic.DeepEqual(now, was.ActiveDeadline) &&
		!equality.Semantic.DeepEqual(now, leaf.Spec.ActiveDeadlineSeconds) {
		d.ActiveDeadlineSeconds = now
	}
	if is.Tolerations != was.Tolerations {
		d.Tolerations = addedTolerations(want.Spec.Tolerations, leaf.Spec.Tolerations)
	}
	is.Resources = was.Resources // Xylem does not resize leaves
	d.Record(leaf.ObjectMeta, v1alpha1.AnnotationPushed, string(fields.MustJSON(is)))
	return d
}

func imageDrift(want, leaf []corev1.Container, is, was map[string]string) map[string]string {
	var drift map[string]string
	has := images(leaf)
	for _, c := range want {
		image, ok := has[c.Name]
		if !ok || is[c.Name] == was[c.Name] || image == c.Image {
			continue
		}
		if drift == nil {
			drift = map[string]string{}
		}
		drift[c.Name] = c.Image
	}
	return drift
}

// addedTolerations returns the leaf's list with the missing tolerations, or nil if none is
// missing. The API only allows adding tolerations.
func addedTolerations(want, leaf []corev1.Toleration) []corev1.Toleration {
	list := slices.Clone(leaf)
	for _, t := range want {
		if !slices.ContainsFunc(leaf, func(has corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, has) }) {
			list = append(list, t)
		}
	}
	if len(list) == len(leaf) {
		return nil
	}
	return list
}

func images(containers []corev1.Container) map[string]string {
	m := make(map[string]string, len(containers))
	for _, c := range containers {
		m[c.Name] = c.Image
	}
	return m
}
