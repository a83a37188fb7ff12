package mirror

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Reporter is the content of AnnotationReportedBy: the member and claim that a root claim's Placed
// condition, or a root Pod's Pushed condition, refers to.
type Reporter struct {
	// ClusterID is the member's cluster ID.
	ClusterID string
	// Claim is the claim whose problem a Pod's condition repeats. It is empty if the condition is
	// about the Pod itself.
	Claim string
}

// ReporterOfRoot reads the annotation of a root claim or Pod. The annotation is meaningless without the
// condition.
func ReporterOfRoot(root metav1.Object) Reporter {
	cluster, claim, _ := strings.Cut(root.GetAnnotations()[v1alpha1.AnnotationReportedBy], "/")
	return Reporter{cluster, claim}
}

// StampReporter adds the annotation to the body of the condition's server-side apply.
func (r Reporter) StampReporter(status *unstructured.Unstructured) *unstructured.Unstructured {
	value := r.ClusterID
	if r.Claim != "" {
		value += "/" + r.Claim
	}
	status.SetAnnotations(map[string]string{v1alpha1.AnnotationReportedBy: value})
	return status
}
