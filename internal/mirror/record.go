package mirror

import "github.com/xylem-io/xylem/api/v1alpha1"

// annotationsLimit in bytes is what an object's annotations may have (k8s.io/apimachinery,
// api/validation); annotationsMargin is left for what others write meanwhile.
const annotationsLimit, annotationsMargin = 256 << 10, 16 << 10

// recordPart in bytes bounds each annotation that grows in the host's record of a
// member, so that neither takes what the other needs.
func recordPart(annotation string) int {
	if annotation == v1alpha1.AnnotationWithdrawn {
		return 128 << 10
	}
	return 96 << 10
}

// RecordRoom in bytes is what an annotation of a member's record may grow to, so that
// the record can always be written. Pure.
func RecordRoom(annotations map[string]string, annotation string) int {
	others := len(annotation)
	for key, value := range annotations {
		if key != annotation {
			others += len(key) + len(value)
		}
	}
	return max(0, min(recordPart(annotation), annotationsLimit-annotationsMargin-others))
}
