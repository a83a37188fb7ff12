package register

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/wording"
)

// adviseOnDenied reports the default patterns that the registration's own spec.namespaces.deny replaces.
func (r *run) adviseOnDenied() {
	if lifted := placement.LiftedDenials(r.registration()); len(lifted) > 0 {
		fmt.Fprintf(r.Env.ErrOut, "note: spec.namespaces.deny of registration %q %s. To deny them again, add these patterns\n", r.name, placement.LiftedDenialsText(lifted))
	}
}

// adviseOnNamespaces warns if --namespaces admits none of the host's current namespaces. This is
// not an error, because an admin can label namespaces later.
func (r *run) adviseOnNamespaces(ctx context.Context) {
	if !r.spec.RequiresLabels() {
		return
	}
	var list corev1.NamespaceList
	if err := r.host.List(ctx, &list); err != nil {
		fmt.Fprintf(r.Env.ErrOut, "note: could not list the host's namespaces to check --%s: %v\n", FlagNamespaces, err)
		return
	}
	cr := r.registration()
	there := placement.MemberOfRegistration(cr, nil)
	for i := range list.Items {
		if there.AnswerRequest(placement.Request{Namespace: placement.NamespaceOf(list.Items[i].Name, &list.Items[i])}).Refusal == nil {
			return
		}
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(cr.Spec.Namespaces.MatchLabels)) {
		labels = append(labels, key+"="+cr.Spec.Namespaces.MatchLabels[key])
	}
	fmt.Fprintf(r.Env.ErrOut, "warning: spec.namespaces of registration %q admits none of the host's %s, so no Pod or claim can go to the member. To label a namespace, run `kubectl label namespace NAMESPACE %s`\n",
		r.name, wording.CountNoun(len(list.Items), "namespace"), strings.Join(labels, " "))
}
