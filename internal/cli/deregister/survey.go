package deregister

import (
	"context"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/wording"
)

// survey contains the host's objects that belong to a member.
type survey struct {
	pods           []corev1.Pod
	unbound, bound []corev1.PersistentVolumeClaim
	volumes        []corev1.PersistentVolume
	orphans        int32
}

// surveyVolumes reads the host's objects that belong to the member, without a cache.
func surveyVolumes(ctx context.Context, host *command.Cluster, cr *v1alpha1.ClusterRegistration) (*survey, error) {
	s := &survey{orphans: cr.Status.Volumes.Orphaned}
	id := cr.Status.ClusterID
	if id == "" {
		return s, nil // the member was never connected, so the host has no objects for it
	}
	names := []string{cr.NodeName()}
	virtualNodes, err := index.AllNodesOfMember(ctx, host, cr)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the list
	}
	for i := range virtualNodes {
		if name := virtualNodes[i].Name; name != cr.NodeName() {
			names = append(names, name)
		}
	}
	for _, name := range names {
		var pods corev1.PodList
		if err := host.List(ctx, &pods, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", name)}); err != nil {
			return nil, fmt.Errorf("list the Pods on node %q: %w", name, err)
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; !podstatus.IsPodFinished(pod) && !podspec.IsDaemonSetPod(pod) {
				s.pods = append(s.pods, *pod)
			}
		}
	}
	var claims corev1.PersistentVolumeClaimList
	if err := host.List(ctx, &claims); err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	for _, claim := range claims.Items {
		switch {
		case claim.Annotations[v1alpha1.AnnotationPlacedIn] != id:
		case claim.Spec.VolumeName == "":
			s.unbound = append(s.unbound, claim)
		default:
			s.bound = append(s.bound, claim)
		}
	}
	var volumes corev1.PersistentVolumeList
	if err := host.List(ctx, &volumes, client.MatchingLabels{v1alpha1.LabelClusterID: id}); err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	s.volumes = volumes.Items
	return s, nil
}

// describeFates describes what happens to each group of objects. It is pure.
func (s *survey) describeFates(policy v1alpha1.DeregistrationPolicy) [][3]string {
	stay := "stay in the member with their data; Xylem adopts them if you register the same cluster again"
	claims := "keep their volumes, which become unreachable"
	if policy == v1alpha1.DeregistrationDrain {
		stay = "must be deleted first; the deregistration waits until they are"
		claims = "must be deleted first; the deregistration waits until you delete them"
	}
	var rows [][3]string
	row := func(n int, what string, names []string, fate string) {
		if n > 0 {
			rows = append(rows, [3]string{fmt.Sprintf("%d %s", n, what), fate, shownNames(names)})
		}
	}
	row(len(s.pods), "running Pods", sortedKeys(s.pods), "are evicted")
	row(len(s.unbound), "unbound claims", sortedKeys(s.unbound), "are withdrawn, and can be placed in another member")
	row(len(s.bound), "bound claims", sortedKeys(s.bound), claims)
	row(len(s.volumes), "volumes", sortedKeys(s.volumes), stay)
	row(int(s.orphans), "orphaned volumes", nil, "stay in the member (kubectl describe clusterregistration lists them)")
	return rows
}

func (s *survey) printSurvey(out io.Writer, cr *v1alpha1.ClusterRegistration, policy v1alpha1.DeregistrationPolicy) error {
	fmt.Fprintf(out, "Deregistering %q (cluster ID %s), policy %s:\n", cr.Name, orUnknown(cr.Status.ClusterID), policy)
	rows := s.describeFates(policy)
	if len(rows) == 0 {
		fmt.Fprintln(out, "  the member has no objects of this host")
		return nil
	}
	w := printers.GetNewTabWriter(out)
	for _, row := range rows {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", row[0], row[1], row[2])
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the summary: %w", err)
	}
	return nil
}

func orUnknown(id string) string {
	if id == "" {
		return "unknown"
	}
	return id
}

func sortedKeys[T any, P interface {
	*T
	client.Object
}](objects []T) []string {
	var names []string
	for i := range objects {
		names = append(names, strings.TrimPrefix(client.ObjectKeyFromObject(P(&objects[i])).String(), "/"))
	}
	return names
}

// shownNames returns the first few names.
func shownNames(names []string) string {
	return wording.FirstNames(names, wording.NamesListed, ", ")
}
