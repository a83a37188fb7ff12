package fields

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PushedMeta is the part of the push record (v1alpha1.AnnotationPushed) about labels and annotations. It
// maps each key that Xylem pushed to the digest of its value.
type PushedMeta struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PushedMetaOfLeaf returns the record for a leaf's metadata, before it gets its origin.
func PushedMetaOfLeaf(leaf metav1.ObjectMeta) PushedMeta {
	return PushedMeta{Labels: DigestValues(leaf.Labels), Annotations: DigestValues(leaf.Annotations)}
}

// MetaDrift contains the labels and annotations that a leaf needs because its root has changed. nil
// removes a key.
type MetaDrift struct{ Labels, Annotations map[string]*string }

// IsEmpty reports whether no change is needed.
func (d MetaDrift) IsEmpty() bool { return len(d.Labels) == 0 && len(d.Annotations) == 0 }

// ApplyToMeta changes the metadata of a leaf.
func (d MetaDrift) ApplyToMeta(leaf *metav1.ObjectMeta) {
	leaf.Labels = applyKeyDrift(leaf.Labels, d.Labels)
	leaf.Annotations = applyKeyDrift(leaf.Annotations, d.Annotations)
}

// MetaDriftOf compares the metadata that a leaf should have with that which it has. was is the stored push
// record, and is the current one. A key drifts if the root changed it after the push and the leaf still
// differs. Keys that were never pushed belong to the member.
func MetaDriftOf(want, leaf metav1.ObjectMeta, is, was PushedMeta) MetaDrift {
	return MetaDrift{
		Labels:      driftOfKeys(want.Labels, leaf.Labels, is.Labels, was.Labels),
		Annotations: driftOfKeys(want.Annotations, leaf.Annotations, is.Annotations, was.Annotations),
	}
}

// RecordPush sets the annotation with the push record, if it differs.
func (d *MetaDrift) RecordPush(leaf metav1.ObjectMeta, key, record string) {
	if leaf.Annotations[key] == record {
		return
	}
	if d.Annotations == nil {
		d.Annotations = map[string]*string{}
	}
	d.Annotations[key] = &record
}

func driftOfKeys(want, leaf, is, was map[string]string) map[string]*string {
	var drift map[string]*string
	set := func(key string, value *string) {
		if drift == nil {
			drift = map[string]*string{}
		}
		drift[key] = value
	}
	for key, digest := range is {
		value := want[key]
		if has, ok := leaf[key]; digest != was[key] && (!ok || has != value) {
			set(key, &value)
		}
	}
	for key := range was {
		_, wanted := is[key]
		// Users of the member can edit the record, so never change a key of the stamp because of it.
		if _, has := leaf[key]; has && !wanted && IsCopiedToLeaf(key) {
			set(key, nil)
		}
	}
	return drift
}

func applyKeyDrift(has map[string]string, change map[string]*string) map[string]string {
	if has == nil {
		has = map[string]string{}
	}
	for key, value := range change {
		if value == nil {
			delete(has, key)
		} else {
			has[key] = *value
		}
	}
	return has
}

// DigestValues returns the digest of each value.
func DigestValues(m map[string]string) map[string]string {
	d := make(map[string]string, len(m))
	for key, value := range m {
		d[key] = DigestOfJSON(value)
	}
	return d
}

// digestBytes is the length of a digest. One change in 2^64 goes unnoticed.
const digestBytes = 8

// DigestOfJSON returns a short digest of a value that consists of strings, numbers, lists and maps.
func DigestOfJSON(v any) string {
	sum := sha256.Sum256(MustMarshalJSON(v))
	return hex.EncodeToString(sum[:digestBytes])
}

// MustMarshalJSON encodes a value that consists of strings, numbers, lists and maps.
func MustMarshalJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("mirror: " + err.Error())
	}
	return data
}
