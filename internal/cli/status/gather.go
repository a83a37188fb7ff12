package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/nodes"
)

// readFleet reads the fleet from the host. It fails if it cannot list the registrations. It records
// other failures in Missing.
func readFleet(ctx context.Context, host *command.Cluster, namespace string, now time.Time) (*Fleet, error) {
	f := &Fleet{TypeMeta: metav1.TypeMeta{APIVersion: inspect.APIVersion, Kind: Kind}, Members: []Member{}}
	var registrations v1alpha1.ClusterRegistrationList
	switch err := host.List(ctx, &registrations); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil, fmt.Errorf("this cluster does not serve ClusterRegistrations: Xylem is not installed, or the cluster is not the host. Choose another context with --context")
	case err != nil:
		return nil, command.Explain("the host", host.Config, fmt.Errorf("list ClusterRegistrations: %w", err))
	}
	for i := range registrations.Items {
		f.Members = append(f.Members, memberOfRegistration(&registrations.Items[i]))
	}
	slices.SortFunc(f.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	f.Leaderless = inspect.LeaderProblem(ctx, host.Config, namespace)
	reader := &inspect.Reader{Reader: host, Misses: &inspect.Misses{}}
	f.readNodes(ctx, reader)
	f.readWaitingPods(ctx, reader)
	f.readVolumes(ctx, reader, now)
	f.Missing = reader.Misses.AllMissing()
	return f, nil
}

// readNodes counts the virtual nodes of members with spec.nodes.
func (f *Fleet) readNodes(ctx context.Context, host *inspect.Reader) {
	if !slices.ContainsFunc(f.Members, func(m Member) bool { return m.hasGroups }) {
		return
	}
	list := inspect.ReadList(ctx, host, "virtual nodes", &corev1.NodeList{}, func(l *corev1.NodeList) []corev1.Node { return l.Items }, client.MatchingLabels{v1alpha1.LabelVirtualNode: "true"})
	for i := range f.Members {
		m := &f.Members[i]
		for j := range list.Items {
			node := &list.Items[j]
			if !m.hasGroups || !v1alpha1.IsNodeOfMember(node.Name, m.Node) {
				continue
			}
			m.nodeNames = append(m.nodeNames, node.Name)
			if m.Nodes++; nodes.IsReady(node) {
				m.NodesReady++
			}
		}
	}
}

// readWaitingPods finds the waiting Pods: Pending ones, and those on virtual nodes of members that are
// not ready.
func (f *Fleet) readWaitingPods(ctx context.Context, host *inspect.Reader) {
	selectors := []fields.Selector{fields.OneTermEqualSelector("status.phase", string(corev1.PodPending))}
	for _, m := range f.Members {
		for _, node := range m.nodeNames {
			if m.Ready {
				break
			}
			selectors = append(selectors, fields.AndSelectors(
				fields.OneTermEqualSelector("spec.nodeName", node), fields.OneTermNotEqualSelector("status.phase", string(corev1.PodPending))))
		}
	}
	for _, selector := range selectors {
		pods := inspect.ReadList(ctx, host, "Pods", &corev1.PodList{}, func(l *corev1.PodList) []Pod {
			var found []Pod
			for i := range l.Items {
				if pod, waits := waitingPod(&l.Items[i]); waits {
					found = append(found, pod)
				}
			}
			return found
		}, client.MatchingFieldsSelector{Selector: selector})
		f.Pods = append(f.Pods, pods.Items...)
		if !pods.Read {
			break
		}
	}
	sortByAge(f.Pods)
}

// readVolumes counts the members' volumes. It reads only the metadata of their PersistentVolumes.
func (f *Fleet) readVolumes(ctx context.Context, host *inspect.Reader, now time.Time) {
	volumes := &metav1.PartialObjectMetadataList{}
	volumes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeList"))
	inspect.ReadList(ctx, host, "PersistentVolumes", volumes, func(l *metav1.PartialObjectMetadataList) []time.Time {
		for i := range l.Items {
			f.Provisioned.countVolume(now.Sub(l.Items[i].CreationTimestamp.Time))
		}
		return nil // keep no page in memory
	}, client.HasLabels{v1alpha1.LabelClusterID})
}
