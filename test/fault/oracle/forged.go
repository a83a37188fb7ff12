package oracle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// AnnotationForged marks the objects that a scenario creates in a member with Xylem's stamp, as the
// member's admin could. It distinguishes them from the objects that Xylem created.
const AnnotationForged = "example.com/forged"

func isForged(obj client.Object) bool { return obj.GetAnnotations()[AnnotationForged] != "" }

// believed checks I8: objects that a member's admin forges have no effect in the host. No root
// claim is placed because of a forged leaf claim alone, and no host PV represents a forged leaf PV.
func believed(e Evidence, h *history) []Violation {
	var found []Violation
	for _, s := range e.History {
		if s.Cluster == e.Host || !isForged(s.Object) {
			continue
		}
		switch obj := s.Object.(type) {
		case *corev1.PersistentVolumeClaim:
			for _, root := range h.claims[types.UID(obj.Annotations[v1alpha1.AnnotationRootUID])] {
				if placedIn(root) == e.IDs[s.Cluster] {
					found = append(found, Violation{"I8", "forged", fmt.Sprintf("root claim %s was placed in %s, which has a forged leaf claim for it", root.obj.Name, s.Cluster)})
				}
			}
		case *corev1.PersistentVolume:
			for _, host := range h.mirrors[e.IDs[s.Cluster]+"/"+obj.Name] {
				found = append(found, Violation{"I8", "forged", fmt.Sprintf("host PV %s represents volume %s, which was forged in %s", host.obj.Name, obj.Name, s.Cluster)})
			}
		}
	}
	return found
}
