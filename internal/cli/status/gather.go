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
)

// pageSize is the maximum number of objects in a page of a list.
const pageSize = 500

// read reads the fleet from the host. It fails if it cannot list the registrations. It records
// other failures in Missing.
func read(ctx context.Context, host *command.Cluster, namespace string, now time.Time) (*Fleet, error) {
	f := &Fleet{TypeMeta: metav1.TypeMeta{APIVersion: inspect.APIVersion, Kind: Kind}, Members: []Member{}}
	var registrations v1alpha1.ClusterRegistrationList
	switch err := host.List(ctx, &registrations); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil, fmt.Errorf("this cluster does not serve ClusterRegistrations: Xylem is not installed, or the cluster is not the host. Choose another context with --context")
	case err != nil:
		return nil, command.Explain("the host", host.Config, fmt.Errorf("list ClusterRegistrations: %w", err))
	}
	for i := range registrations.Items {
		f.Members = append(f.Members, memberOf(&registrations.Items[i]))
	}
	slices.SortFunc(f.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	f.Leaderless = inspect.LeaderProblem(ctx, host.Config, namespace)
	f.note("Pods", f.readPods(ctx, host))
	f.note("PersistentVolumes", f.readVolumes(ctx, host, now))
	return f, nil
}

func (f *Fleet) note(what string, err error) {
	if err != nil {
		f.Missing = append(f.Missing, inspect.Missing{What: what, Why: inspect.Plain(err.Error())})
	}
}

// readPods finds the waiting Pods: Pending ones, and those on virtual nodes of members that are
// not ready.
func (f *Fleet) readPods(ctx context.Context, host client.Reader) error {
	selectors := []fields.Selector{fields.OneTermEqualSelector("status.phase", string(corev1.PodPending))}
	for _, m := range f.Members {
		if !m.Ready {
			selectors = append(selectors, fields.AndSelectors(
				fields.OneTermEqualSelector("spec.nodeName", m.Node), fields.OneTermNotEqualSelector("status.phase", string(corev1.PodPending))))
		}
	}
	for _, selector := range selectors {
		var list corev1.PodList
		for {
			if err := host.List(ctx, &list, client.MatchingFieldsSelector{Selector: selector}, client.Limit(pageSize), client.Continue(list.Continue)); err != nil {
				return err //nolint:wrapcheck // The caller names what was read.
			}
			for i := range list.Items {
				if pod, waits := waiting(&list.Items[i]); waits {
					f.Pods = append(f.Pods, pod)
				}
			}
			if list.Continue == "" {
				break
			}
		}
	}
	sortByAge(f.Pods)
	return nil
}

// readVolumes counts the members' volumes. It reads only the metadata of their PersistentVolumes.
func (f *Fleet) readVolumes(ctx context.Context, host client.Reader, now time.Time) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeList"))
	for {
		if err := host.List(ctx, list, client.HasLabels{v1alpha1.LabelClusterID}, client.Limit(pageSize), client.Continue(list.Continue)); err != nil {
			return err //nolint:wrapcheck // The caller names what was read.
		}
		for i := range list.Items {
			f.Provisioned.count(now.Sub(list.Items[i].CreationTimestamp.Time))
		}
		if list.Continue == "" {
			return nil
		}
	}
}
