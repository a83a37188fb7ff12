package mirror

import "github.com/xylem-io/xylem/api/v1alpha1"

// annotationsLimit is the maximum size, in bytes, of an object's annotations (k8s.io/apimachinery,
// api/validation). annotationsMargin is reserved for concurrent writes by other clients.
const annotationsLimit, annotationsMargin = 256 << 10, 16 << 10

// recordAnnotationLimit returns the maximum size, in bytes, of a growing annotation in the host's record of a
// member, so that no annotation uses up the space of another.
func recordAnnotationLimit(annotation string) int {
	if annotation == v1alpha1.AnnotationWithdrawn {
		return 128 << 10
	}
	return 96 << 10
}

// RecordAnnotationSpace returns the maximum size, in bytes, of an annotation in a member's record, so that
// the record can always be written. It is a pure function.
func RecordAnnotationSpace(annotations map[string]string, annotation string) int {
	others := len(annotation)
	for key, value := range annotations {
		if key != annotation {
			others += len(key) + len(value)
		}
	}
	return max(0, min(recordAnnotationLimit(annotation), annotationsLimit-annotationsMargin-others))
}
