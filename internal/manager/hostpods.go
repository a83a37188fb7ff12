package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/reduced"
)

// hostPods determines which of the host's Pods the cache keeps, and what it keeps of them. A Pod on one of the
// host's own nodes concerns Xylem only if it uses a claim, or if Xylem has written to it: a Pod never leaves
// its node.
type hostPods struct {
	pods      *reduced.ListWatch
	listAgain func() // lists all Pods again

	mu sync.Mutex
	// virtualNodes contains the names of virtual nodes, and the node names of members, in which the names of the
	// virtual nodes of their groups end. others contains the names of the nodes whose Pods were reduced.
	virtualNodes, otherNodes sets.Set[string]
}

func newHostPods() *hostPods {
	pods := &reduced.ListWatch{}
	return &hostPods{pods: pods, listAgain: pods.ListAgain, virtualNodes: sets.New[string](), otherNodes: sets.New[string]()}
}

// readVirtualNodes reads which virtual nodes exist, so that the first list of Pods is not repeated.
func (p *hostPods) readVirtualNodes(ctx context.Context, live client.Reader) error {
	var registrations v1alpha1.ClusterRegistrationList
	if err := live.List(ctx, &registrations); err != nil {
		return fmt.Errorf("list the registrations: %w", err)
	}
	for i := range registrations.Items {
		p.virtualNodes.Insert(registrations.Items[i].NodeName())
	}
	// A Node may outlive its registration.
	var left corev1.NodeList
	if err := live.List(ctx, &left, client.MatchingLabels{v1alpha1.LabelVirtualNode: "true"}); err != nil {
		return fmt.Errorf("list the virtual nodes: %w", err)
	}
	for i := range left.Items {
		p.virtualNodes.Insert(left.Items[i].Name)
	}
	return nil
}

// newInformer creates the cache's informers (controller-runtime/pkg/cache: Options.NewInformer).
func (p *hostPods) newInformer(from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	if _, pods := object.(*corev1.Pod); pods {
		p.pods.ListerWatcherWithContext = toolscache.ToListerWatcherWithContext(from)
		from = p.pods
	}
	return toolscache.NewSharedIndexInformer(from, object, resync, indexers)
}

// transformRegistration is the cache transform of registrations. Usually, a registration's node does not exist yet. If Pods were
// bound to it already, because they named it themselves, the cache lists all Pods again.
func (p *hostPods) transformRegistration(obj any) (any, error) {
	registration, ok := obj.(*v1alpha1.ClusterRegistration)
	if !ok {
		return obj, nil
	}
	registration.ManagedFields = nil
	name := registration.NodeName()
	p.mu.Lock()
	missing := false
	if !p.virtualNodes.Has(name) {
		p.virtualNodes.Insert(name)
		for other := range p.otherNodes {
			if v1alpha1.IsNodeOfMember(other, name) {
				p.otherNodes.Delete(other)
				missing = true
			}
		}
	}
	p.mu.Unlock()
	if missing {
		p.listAgain()
	}
	return registration, nil
}

// reducePod returns what the cache keeps of a Pod, or nil.
func (p *hostPods) reducePod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	if pod.Spec.NodeName == "" || isMarkedByXylem(pod) || p.isVirtualNode(pod.Spec.NodeName) {
		return pod, nil
	}
	if len(podspec.ClaimNamesOfPod(pod)) == 0 {
		return nil, nil //nolint:nilnil // the cache does not keep it
	}
	return reduceToClaims(pod), nil
}

func (p *hostPods) isVirtualNode(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.virtualNodes.Has(node) {
		return true
	}
	if member, found := v1alpha1.MemberNodeOf(node); found && p.virtualNodes.Has(member) {
		return true
	}
	if !p.otherNodes.Has(node) {
		p.otherNodes.Insert(strings.Clone(node))
	}
	return false
}

// isMarkedByXylem reports whether Xylem has written to a Pod.
func isMarkedByXylem(pod *corev1.Pod) bool {
	for key := range pod.Annotations {
		if strings.HasPrefix(key, v1alpha1.Prefix) {
			return true
		}
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return strings.HasPrefix(string(c.Type), v1alpha1.Prefix) })
}

// reduceToClaims returns what shows that a Pod uses its claims, and why it still exists. It has no generation, so that
// the Pod counts as changed when the cache keeps all of it (route.ChangedPredicate).
func reduceToClaims(pod *corev1.Pod) *corev1.Pod {
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: reduced.InternText(pod.Namespace), Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp, DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds, Finalizers: pod.Finalizers,
		},
		Spec:   corev1.PodSpec{NodeName: reduced.InternText(pod.Spec.NodeName)},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(reduced.InternText(string(pod.Status.Phase)))},
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		for _, text := range []*string{&owner.APIVersion, &owner.Kind, &owner.Name, (*string)(&owner.UID)} {
			*text = reduced.InternText(*text)
		}
		kept.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	for _, v := range pod.Spec.Volumes {
		if v.Ephemeral != nil {
			kept.Spec.Volumes = append(kept.Spec.Volumes, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
		} else if v.PersistentVolumeClaim != nil {
			kept.Spec.Volumes = append(kept.Spec.Volumes, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: v.PersistentVolumeClaim}})
		}
	}
	return kept
}
