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

// pushRecord is the push record, which contains what Xylem pushed. Maps contain digests of the values.
type pushRecord struct {
	fields.PushedMeta
	Images         map[string]string `json:"images,omitempty"`
	InitImages     map[string]string `json:"initImages,omitempty"`
	ActiveDeadline *int64            `json:"activeDeadlineSeconds,omitempty"`
	Tolerations    string            `json:"tolerations,omitempty"`
	// Amounts contains the resources that a resize can change (resizableAmounts). It is nil for leaves of earlier versions,
	// which have a digest of all resources instead, or nothing.
	Amounts         map[string]string `json:"amounts,omitzero"`
	ResourcesDigest string            `json:"resources,omitempty"`
}

// addPushRecord adds the push record to a translated Pod, before it gets its origin.
func addPushRecord(leaf *corev1.Pod) {
	record := pushRecord{
		PushedMeta:     fields.PushedMetaOfLeaf(leaf.ObjectMeta),
		Images:         fields.DigestValues(imagesByContainer(leaf.Spec.Containers)),
		InitImages:     fields.DigestValues(imagesByContainer(leaf.Spec.InitContainers)),
		ActiveDeadline: leaf.Spec.ActiveDeadlineSeconds,
		Amounts:        recordedAmountsOf(&leaf.Spec),
	}
	if len(leaf.Spec.Tolerations) > 0 {
		record.Tolerations = fields.DigestOfJSON(leaf.Spec.Tolerations)
	}
	setPushRecord(leaf, record)
}

func setPushRecord(leaf *corev1.Pod, record pushRecord) {
	leaf.Annotations[v1alpha1.AnnotationPushed] = string(fields.MustMarshalJSON(record))
}

func pushRecordOf(leaf *corev1.Pod) pushRecord {
	var record pushRecord
	if json.Unmarshal([]byte(leaf.Annotations[v1alpha1.AnnotationPushed]), &record) != nil {
		// Xylem did not write this value, so do not remove anything because of it.
		return pushRecord{}
	}
	return record
}

// PodDrift contains the changes that a leaf Pod needs because its root has changed.
type PodDrift struct {
	fields.MetaDrift
	// Images and InitImages are the images to set, by container name.
	Images, InitImages map[string]string
	// ActiveDeadlineSeconds is the value to set, or nil.
	ActiveDeadlineSeconds *int64
	// Tolerations is the leaf's complete new list, if any must be added.
	Tolerations []corev1.Toleration
	// Amounts are the resources to set by a resize. An update cannot change them.
	Amounts resizableAmounts
}

// IsEmpty reports whether no change is needed.
func (d PodDrift) IsEmpty() bool { return !d.NeedsUpdate() && !d.Resizes() }

// NeedsUpdate reports whether the leaf needs a change other than a resize.
func (d PodDrift) NeedsUpdate() bool { return !d.MetaDrift.IsEmpty() || d.updatesSpec() }

// Resizes reports whether the root was resized after the push, and the leaf still has other resources.
func (d PodDrift) Resizes() bool { return len(d.Amounts) > 0 }

// ChangesSpec reports whether the spec must change.
func (d PodDrift) ChangesSpec() bool { return d.updatesSpec() || d.Resizes() }

func (d PodDrift) updatesSpec() bool {
	return len(d.Images) > 0 || len(d.InitImages) > 0 || d.ActiveDeadlineSeconds != nil || d.Tolerations != nil
}

// PodDriftOf compares the leaf with its root, in the mutable fields: labels, annotations,
// images, the active deadline, additional tolerations, and resources. A field drifts if the root changed
// it after the push and the leaf still differs. Keys that were never pushed belong to the
// member. A leaf of another origin does not drift, because Xylem must not change it.
func PodDriftOf(root, leaf *corev1.Pod, m mirror.Member) PodDrift {
	if origin, ok := mirror.LeafOriginFromHost(m.HostID, leaf); !ok || origin != mirror.OriginForRoot(m.HostID, root) {
		return PodDrift{}
	}
	if m.APIServer == nil {
		m.APIServer = &mirror.APIServer{} // the leaf may have tokens from a time when the registration had apiServer
	}
	want, refused := translatePodFields(root, m)
	if len(refused) > 0 {
		// Refused fields are immutable, so a root that has a leaf cannot set any of them.
		return PodDrift{}
	}
	was, is := pushRecordOf(leaf), pushRecordOf(want)
	d := PodDrift{
		MetaDrift:  fields.MetaDriftOf(want.ObjectMeta, leaf.ObjectMeta, is.PushedMeta, was.PushedMeta),
		Images:     imageDriftOf(want.Spec.Containers, leaf.Spec.Containers, is.Images, was.Images),
		InitImages: imageDriftOf(want.Spec.InitContainers, leaf.Spec.InitContainers, is.InitImages, was.InitImages),
	}
	if now := is.ActiveDeadline; now != nil && !equality.Semantic.DeepEqual(now, was.ActiveDeadline) &&
		!equality.Semantic.DeepEqual(now, leaf.Spec.ActiveDeadlineSeconds) {
		d.ActiveDeadlineSeconds = now
	}
	if is.Tolerations != was.Tolerations {
		d.Tolerations = addedTolerations(want.Spec.Tolerations, leaf.Spec.Tolerations)
	}
	d.Amounts = amountDriftOf(&want.Spec, &leaf.Spec, pushedAmountsOf(was, &want.Spec))
	is.recordAmounts(was, &want.Spec, d.Amounts)
	d.RecordPush(leaf.ObjectMeta, v1alpha1.AnnotationPushed, string(fields.MustMarshalJSON(is)))
	return d
}

func imageDriftOf(want, leaf []corev1.Container, is, was map[string]string) map[string]string {
	var drift map[string]string
	has := imagesByContainer(leaf)
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

func imagesByContainer(containers []corev1.Container) map[string]string {
	m := make(map[string]string, len(containers))
	for _, c := range containers {
		m[c.Name] = c.Image
	}
	return m
}
