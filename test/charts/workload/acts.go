package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// tell causes the incidents that the dashboard should show, one after the other.
func (w *workload) tell(ctx context.Context) error {
	member := w.x.Member(troubled)
	for _, act := range []struct {
		says  string
		do    func() error
		lasts time.Duration
	}{
		{"all members are healthy", func() error { return nil }, 75 * time.Second},
		{"the driver of " + troubled + " creates no disks", func() error {
			return member.SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Code: codes.ResourceExhausted, Message: "the pool is full"})
		}, 45 * time.Second},
		{"the driver creates disks again", func() error { return member.SetFaults() }, 45 * time.Second},
		{troubled + " is disconnected", func() error { return member.Proxy().SetMode(controlplane.Cut) }, 75 * time.Second},
		{troubled + " is connected again", func() error { return member.Proxy().SetMode(controlplane.Pass) }, 90 * time.Second},
		{steady + " no longer admits namespace " + space, func() error { return w.admit(ctx, "kube-*", space) }, 30 * time.Second},
		{steady + " admits it again", func() error { return w.admit(ctx, "kube-*") }, 30 * time.Second},
		{"the host loses a volume while no manager runs", func() error { return w.lose(ctx) }, 60 * time.Second},
	} {
		w.say("%s", act.says)
		if err := act.do(); err != nil {
			return fmt.Errorf("%s: %w", act.says, err)
		}
		timer := time.NewTimer(act.lasts)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
	return nil
}

// admit lets the first member admit all namespaces except those that match the patterns.
func (w *workload) admit(ctx context.Context, not ...string) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"namespaces": map[string]any{"deny": not}}})
	if err != nil {
		return fmt.Errorf("encode spec.namespaces: %w", err)
	}
	if err := w.x.Host.API.Patch(ctx, &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: steady}}, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("change the rules of member %s: %w", steady, err)
	}
	return nil
}

// lose removes a claim in the first member, its Pod and its volume from the host while no manager
// runs, as if the host were restored to an earlier state. It deletes the volume as the manager.
func (w *workload) lose(ctx context.Context) error {
	if err := w.x.Manager.Stop(); err != nil {
		return err
	}
	if err := w.second.Stop(); err != nil {
		return err
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := w.x.Host.API.Get(ctx, client.ObjectKey{Namespace: space, Name: keptClaim}, claim); err != nil {
		return fmt.Errorf("get claim %s: %w", keptClaim, err)
	}
	config, err := w.x.Host.RESTConfig(controlplane.Direct)
	if err != nil {
		return err
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: harness.HostUser, Groups: []string{"system:masters"}}
	api, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	for _, obj := range []client.Object{
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: keptClaim}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}},
		claim,
	} {
		// Of these objects, the manager can delete only the volume. The admin deletes the others.
		as := w.x.Host.API
		if _, isVolume := obj.(*corev1.PersistentVolume); isVolume {
			as = api
		}
		if err := as.Delete(ctx, obj, client.GracePeriodSeconds(0)); err != nil {
			return fmt.Errorf("delete %s: %w", obj.GetName(), err)
		}
		unheld := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := as.Patch(ctx, obj, unheld); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the finalizers of %s: %w", obj.GetName(), err)
		}
		if err := harness.Await(ctx, "the deletion of "+obj.GetName(), func(ctx context.Context) error {
			if err := api.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return client.IgnoreNotFound(err)
			}
			return errors.New("it still exists")
		}); err != nil {
			return err
		}
	}
	if err := w.x.Manager.Start(ctx); err != nil {
		return err
	}
	return w.second.Start(ctx)
}
