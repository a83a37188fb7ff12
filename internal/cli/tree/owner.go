package tree

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/tree/build"
	"github.com/xylem-io/xylem/internal/cli/tree/model"
	"github.com/xylem-io/xylem/internal/text"
)

// owner reads a workload or a namespace. It returns its node and the selector of its Pods.
func (r reading) owner(ctx context.Context, t target) (*model.Node, labels.Selector, error) {
	switch t.kind {
	case kindDeployment:
		var d appsv1.Deployment
		if err := r.get(ctx, t, &d); err != nil {
			return nil, nil, err
		}
		return workload(t.kind, &d, d.Spec.Replicas, d.Status.ReadyReplicas, d.Spec.Selector)
	case kindStatefulSet:
		var s appsv1.StatefulSet
		if err := r.get(ctx, t, &s); err != nil {
			return nil, nil, err
		}
		return workload(t.kind, &s, s.Spec.Replicas, s.Status.ReadyReplicas, s.Spec.Selector)
	}
	var namespace corev1.Namespace
	if err := r.get(ctx, t, &namespace); err != nil {
		return nil, nil, err
	}
	n := build.Object(t.kind, "", &namespace, build.Phase(string(namespace.Status.Phase)), model.Good)
	return &n, labels.Everything(), nil
}

func workload(kind string, obj client.Object, wanted *int32, ready int32, selector *metav1.LabelSelector) (*model.Node, labels.Selector, error) {
	pods, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, nil, fmt.Errorf("read the selector of %s %q: %w", kind, obj.GetName(), err)
	}
	state, health := "Ready", model.Good
	if replicas := ptr.Deref(wanted, 1); ready < replicas {
		state, health = "NotReady", model.Waiting
	}
	n := build.Object(kind, "", obj, state, health)
	n.Details = append(n.Details, fmt.Sprintf("%d of %s ready", ready, text.Count(int(ptr.Deref(wanted, 1)), "Pod")))
	return &n, pods, nil
}

// get reads the requested object.
func (r reading) get(ctx context.Context, t target, into client.Object) error {
	key := types.NamespacedName{Namespace: r.namespace, Name: t.name}
	if t.kind == kindNamespace {
		key.Namespace = ""
	}
	if err := r.host.Get(ctx, key, into); err != nil {
		return r.suggest(ctx, t, fmt.Errorf("read %s %q: %w", t.kind, key, err))
	}
	return nil
}

func namesIn(list client.ObjectList) []string {
	var found []string
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil
	}
	for _, item := range items {
		if obj, ok := item.(client.Object); ok {
			found = append(found, obj.GetName())
		}
	}
	slices.Sort(found)
	return found
}
