package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	// another is the name of a second registration of a cluster.
	another = "another"
	// nowhere is an address without a listener.
	nowhere = "https://127.0.0.1:1"
)

// duplicates returns the scenarios in which a cluster is registered twice. The registration that
// recorded the cluster first keeps it.
func duplicates() []Scenario {
	return []Scenario{
		{
			Name: "registered-twice", About: "a member in use is registered again while a Pod is created: the first registration keeps the member",
			Act: func(ctx context.Context, w *World) error {
				kubeconfig, err := w.MemberKubeconfig(ctx, rig.One)
				if err != nil {
					return err
				}
				return errors.Join(w.registerAnother(ctx, kubeconfig), w.pair(ctx, rig.ClassDelete))
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.duplicate(ctx), w.upAndBound(ctx))
			},
			Restore: do((*World).unregisterAnother),
		},
		{
			Name: "registered-before", About: "an older registration that never connected gets a kubeconfig for a younger registration's member, which has a claim: the younger registration keeps the member",
			Setup: do((*World).olderUnconnected),
			Act: func(ctx context.Context, w *World) error {
				kubeconfig, err := w.MemberKubeconfig(ctx, rig.Two)
				if err != nil {
					return err
				}
				return w.SetKubeconfig(ctx, another, kubeconfig)
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.duplicate(ctx), w.registered(ctx), w.boundInTwo(ctx), w.running(ctx, app))
			},
			Restore: do((*World).unregisterAnother),
		},
	}
}

// registerAnother creates the second registration, without waiting for it.
func (w *World) registerAnother(ctx context.Context, kubeconfig []byte) error {
	if err := w.SetKubeconfig(ctx, another, kubeconfig); err != nil {
		return err
	}
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: another}}
	cr.Spec.KubeconfigSecretRef.Name = harness.SecretName(another)
	if err := w.Host.API.Create(ctx, cr); err != nil {
		return fmt.Errorf("register %s: %w", another, err)
	}
	return nil
}

// olderUnconnected registers the second member twice: first with a kubeconfig that cannot connect,
// and then with one that can. It then creates a claim and a Pod there.
func (w *World) olderUnconnected(ctx context.Context) error {
	if err := w.Deregister(ctx, rig.Two); err != nil {
		return err
	}
	kubeconfig, err := w.MemberKubeconfig(ctx, rig.Two)
	if err != nil {
		return err
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return fmt.Errorf("read a kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = nowhere
	}
	if kubeconfig, err = clientcmd.Write(*config); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	if err := w.registerAnother(ctx, kubeconfig); err != nil {
		return err
	}
	if err := w.registerAgain(ctx); err != nil {
		return err
	}
	if err := errors.Join(w.createClaim(ctx, data, rig.ClassDelete), w.createApp(ctx, rig.NodeTwo)); err != nil {
		return err
	}
	return harness.Await(ctx, "claim and Pod", func(ctx context.Context) error {
		return errors.Join(w.running(ctx, app), w.boundInTwo(ctx))
	})
}

// duplicate returns nil once the second registration is rejected and lacks a node.
func (w *World) duplicate(ctx context.Context) error {
	cr, err := get[v1alpha1.ClusterRegistration](ctx, w, w.Host, another)
	if err != nil {
		return err
	}
	c := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionConnected)
	if c == nil || c.Status == metav1.ConditionTrue || c.Reason != v1alpha1.ReasonDuplicateCluster {
		return fmt.Errorf("registration %s reports %v, want %s", another, c, v1alpha1.ReasonDuplicateCluster)
	}
	return gone[corev1.Node](ctx, w, w.Host, v1alpha1.DefaultNodeNamePrefix+another)
}

func (w *World) unregisterAnother(ctx context.Context) error { return w.Deregister(ctx, another) }
