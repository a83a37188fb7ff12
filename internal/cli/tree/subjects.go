package tree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/wording"
)

// Kinds that can be the root of a tree, in addition to those that gather reads.
const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindDaemonSet   = "DaemonSet"
	kindReplicaSet  = "ReplicaSet"
	kindJob         = "Job"
	kindNamespace   = "Namespace"
)

// kinds maps what users type to the kinds that can be the root of a tree.
var kinds = map[string]string{
	"pvc": inspect.KindClaim, "pvcs": inspect.KindClaim, "persistentvolumeclaim": inspect.KindClaim, "persistentvolumeclaims": inspect.KindClaim,
	"pod": inspect.KindPod, "pods": inspect.KindPod, "po": inspect.KindPod,
	"deployment": kindDeployment, "deployments": kindDeployment, "deploy": kindDeployment,
	"statefulset": kindStatefulSet, "statefulsets": kindStatefulSet, "sts": kindStatefulSet,
	"daemonset": kindDaemonSet, "daemonsets": kindDaemonSet, "ds": kindDaemonSet,
	"replicaset": kindReplicaSet, "replicasets": kindReplicaSet, "rs": kindReplicaSet,
	"job": kindJob, "jobs": kindJob,
	"pv": inspect.KindVolume, "pvs": inspect.KindVolume, "persistentvolume": inspect.KindVolume, "persistentvolumes": inspect.KindVolume,
	"volumesnapshot": inspect.KindSnapshot, "volumesnapshots": inspect.KindSnapshot, "vs": inspect.KindSnapshot,
	"namespace": kindNamespace, "namespaces": kindNamespace, "ns": kindNamespace,
}

// offered contains the kinds that messages and completions suggest.
var offered = []string{"pvc", "pod", "deployment", "statefulset", "daemonset", "replicaset", "job", "namespace", "pv", "volumesnapshot"}

// target is the requested object.
type target struct{ kind, name string }

// parseTarget parses KIND NAME or KIND/NAME.
func parseTarget(args []string) (target, error) {
	if len(args) == 1 {
		if kind, name, slash := strings.Cut(args[0], "/"); slash {
			args = []string{kind, name}
		}
	}
	if len(args) != 2 || args[1] == "" {
		return target{}, fmt.Errorf("which object? Specify KIND NAME or KIND/NAME, such as pvc/data; KIND is one of %s", strings.Join(offered, ", "))
	}
	kind := kinds[strings.ToLower(args[0])]
	if kind == "" {
		meant := ""
		if nearest := wording.NearestWord(args[0], offered); nearest != "" {
			meant = fmt.Sprintf(" Did you mean %q?", nearest)
		}
		return target{}, fmt.Errorf("unknown kind %q.%s KIND is one of %s", args[0], meant, strings.Join(offered, ", "))
	}
	return target{kind, args[1]}, nil
}

// reading reads trees from the host and its members.
type reading struct {
	env       *command.Env
	host      *command.Cluster
	namespace string
	way       inspect.ConnectionWay
}

// isSingleObject reports whether a kind's tree is not composed of those of Pods and claims.
func (t target) isSingleObject() bool {
	return slices.Contains([]string{inspect.KindClaim, inspect.KindPod, inspect.KindVolume, inspect.KindSnapshot}, t.kind)
}

// treeOfTarget returns the tree of the target. A workload's or a namespace's tree contains those of its
// Pods and claims.
func (r reading) treeOfTarget(ctx context.Context, t target) (*inspect.Tree, error) {
	if t.isSingleObject() {
		return r.treeOfOne(ctx, t)
	}
	root, parts, err := r.readParts(ctx, t)
	if err != nil {
		return nil, err
	}
	whole := &inspect.Tree{TypeMeta: metav1.TypeMeta{APIVersion: inspect.APIVersion, Kind: inspect.TreeKind}, Root: *root}
	for _, part := range parts {
		one, err := r.treeOfOne(ctx, part)
		if apierrors.IsNotFound(err) {
			continue // deleted after it was listed
		}
		if err != nil {
			return nil, err
		}
		whole.Root.Children = append(whole.Root.Children, one.Root)
		whole.Missing = appendNew(whole.Missing, one.Missing)
		whole.Recorded = appendNew(whole.Recorded, one.Recorded)
	}
	for i := range whole.Root.Children {
		whole.Root.Health = worseHealth(whole.Root.Health, whole.Root.Children[i].Health)
	}
	return whole, nil
}

// treeOfOne returns the tree of one claim, Pod, volume or snapshot.
func (r reading) treeOfOne(ctx context.Context, t target) (*inspect.Tree, error) {
	facts, err := r.readFacts(ctx, t)
	if err != nil {
		return nil, err
	}
	return BuildTree(facts), nil
}

// readFacts reads a claim, a Pod, a volume or a snapshot, and related objects.
func (r reading) readFacts(ctx context.Context, t target) (*inspect.Facts, error) {
	g := inspect.NewGathering(ctx, r.host, r.env.Clock.Now())
	read := g.ReadClaim
	switch t.kind {
	case inspect.KindPod:
		read = g.ReadPod
	case inspect.KindSnapshot:
		read = g.ReadSnapshot
	case inspect.KindVolume:
		read = func(ctx context.Context, key types.NamespacedName) error { return g.ReadVolume(ctx, key.Name) }
	}
	if err := read(ctx, types.NamespacedName{Namespace: r.namespace, Name: t.name}); err != nil {
		return nil, r.suggestNearest(ctx, t, err)
	}
	if err := g.ReadMembers(ctx, r.env, r.way); err != nil {
		return nil, err
	}
	g.Leaderless = inspect.LeaderProblem(ctx, r.host.Config, r.env.Namespace)
	return g.GatheredFacts(), nil
}

// readParts returns the node for a workload or a namespace, and its parts: a workload's Pods, or a
// namespace's Pods with claims and its claims that no Pod uses.
func (r reading) readParts(ctx context.Context, t target) (*inspect.Node, []target, error) {
	root, selector, err := r.readOwner(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	var pods corev1.PodList
	if err := r.host.List(ctx, &pods, client.InNamespace(r.namespaceOf(t)), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, nil, command.Explain("the host", r.host.Config, fmt.Errorf("list Pods: %w", err))
	}
	var parts []target
	used := map[string]bool{}
	for i := range pods.Items {
		names := podspec.ClaimNamesOfPod(&pods.Items[i])
		if len(names) > 0 || t.kind != kindNamespace {
			parts = append(parts, target{inspect.KindPod, pods.Items[i].Name})
		}
		for _, name := range names {
			used[name] = true
		}
	}
	if t.kind == kindNamespace {
		var claims corev1.PersistentVolumeClaimList
		if err := r.host.List(ctx, &claims, client.InNamespace(t.name)); err != nil {
			return nil, nil, command.Explain("the host", r.host.Config, fmt.Errorf("list claims: %w", err))
		}
		for i := range claims.Items {
			if name := claims.Items[i].Name; !used[name] {
				parts = append(parts, target{inspect.KindClaim, name})
			}
		}
	}
	slices.SortFunc(parts, func(a, b target) int { return cmp.Or(-cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	return root, parts, nil
}

// namespaceOf returns the namespace of the target's objects.
func (r reading) namespaceOf(t target) string {
	if t.kind == kindNamespace {
		return t.name
	}
	return r.namespace
}

// suggestNearest adds a suggestion to a NotFound error.
func (r reading) suggestNearest(ctx context.Context, t target, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	if nearest := wording.NearestWord(t.name, namesOfKind(ctx, r.host, r.namespace, t.kind)); nearest != "" {
		return errors.Join(err, fmt.Errorf("did you mean %q?", nearest))
	}
	return err
}

func appendNew[T comparable](to, from []T) []T {
	for _, item := range from {
		if !slices.Contains(to, item) {
			to = append(to, item)
		}
	}
	return to
}

// worseHealth returns the worse of two Health values.
func worseHealth(a, b inspect.Health) inspect.Health {
	order := []inspect.Health{inspect.Good, inspect.Unknown, inspect.Waiting, inspect.Bad}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// keepOnlyProblems removes healthy objects from a tree, except those that lead to unhealthy ones. It
// returns false if all objects are healthy.
func keepOnlyProblems(n *inspect.Node) bool {
	var kept []inspect.Node
	for i := range n.Children {
		if keepOnlyProblems(&n.Children[i]) {
			kept = append(kept, n.Children[i])
		}
	}
	n.Children = kept
	return n.Health == inspect.Bad || n.Health == inspect.Waiting || len(kept) > 0
}

// namesOfKind lists the names of a kind's objects.
func namesOfKind(ctx context.Context, host client.Reader, namespace, kind string) []string {
	lists := map[string]client.ObjectList{
		inspect.KindClaim: &corev1.PersistentVolumeClaimList{}, inspect.KindPod: &corev1.PodList{},
		kindDeployment: &appsv1.DeploymentList{}, kindStatefulSet: &appsv1.StatefulSetList{}, kindDaemonSet: &appsv1.DaemonSetList{},
		kindReplicaSet: &appsv1.ReplicaSetList{}, kindJob: &batchv1.JobList{}, kindNamespace: &corev1.NamespaceList{},
		inspect.KindVolume: &corev1.PersistentVolumeList{}, inspect.KindSnapshot: &snapshotv1.VolumeSnapshotList{},
	}
	list := lists[kind]
	if list == nil || host.List(ctx, list, client.InNamespace(namespace)) != nil {
		return nil
	}
	return namesInList(list)
}
