package leafnamespace

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

// creates is a member that answers each creation with err.
type creates struct {
	client.Client
	err error
}

func (c creates) Create(context.Context, client.Object, ...client.CreateOption) error { return c.err }

// pods is the host's cache.
type pods struct {
	client.Reader
	items []corev1.Pod
}

func (p pods) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if into, ok := list.(*corev1.PodList); ok {
		into.Items = p.items
	}
	return nil
}

// none is an empty cache.
type none struct{ cache.Cache }

func (none) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, "")
}

func (none) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

var denied = mirror.NewRefusal(v1alpha1.ReasonNamespaceRefused, "no")

// A rejection is recorded for the namespace's claims and Pods, even if no Pod is bound or nominated
// to the member's node, as on a host whose scheduler does not nominate nodes.
func TestCreate(t *testing.T) {
	namespaces := schema.GroupResource{Resource: "namespaces"}
	bound := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: corev1.PodSpec{NodeName: here.NodeName}}
	for name, tc := range map[string]struct {
		err    error
		pods   []corev1.Pod
		before bool
		want   bool
		events int
	}{
		"created":                         {before: true},
		"it exists":                       {before: true, err: apierrors.NewAlreadyExists(namespaces, "shop")},
		"a webhook without a status":      {err: apierrors.NewBadRequest("no"), want: true},
		"a policy":                        {err: apierrors.NewForbidden(namespaces, "shop", errors.New("no")), want: true, pods: []corev1.Pod{bound}, events: 1},
		"a Pod without a node":            {err: apierrors.NewBadRequest("no"), want: true, pods: []corev1.Pod{{}}},
		"a webhook that does not respond": {err: apierrors.NewInternalError(errors.New("failed calling webhook")), want: true},
		"no response":                     {err: errors.New("connection refused")},
		"no response after a rejection":   {before: true, want: true, err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(2)
			r := newReconciler(&member.Link{Member: here, Host: pods{items: tc.pods}, Recorder: recorder,
				MemberWriter: guarded.NewMemberWriter(creates{err: tc.err}, here.HostID, here.Registration, guarded.HostOnlyGuard{})})
			if tc.before {
				r.NamespaceRejections.SetRejection("shop", denied)
			}
			err := r.createNamespace(t.Context(), made(host(nil), func(ns *corev1.Namespace) { ns.UID, ns.ResourceVersion = "", "" }))
			if tolerated := tc.err == nil || apierrors.IsAlreadyExists(tc.err); (err == nil) != tolerated {
				t.Errorf("error is %v", err)
			}
			got := r.NamespaceRejections.RejectionOf("shop")
			if (got != nil) != tc.want || got != nil && got.Reason != v1alpha1.ReasonNamespaceRefused {
				t.Errorf("recorded %v, want a record: %t", got, tc.want)
			}
			if len(recorder.Events) != tc.events {
				t.Errorf("%d events, want %d", len(recorder.Events), tc.events)
			}
		})
	}
}

// A namespace that exists in neither cluster is no longer reported as rejected, and takes no memory.
func TestForgetRejection(t *testing.T) {
	r := newReconciler(&member.Link{Member: here, Host: none{}, Cache: none{}, Clock: clock.RealClock{}, CheckNotSuspended: func() error { return nil }})
	r.NamespaceRejections.SetRejection("shop", denied)
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	if got := r.NamespaceRejections.RejectionOf("shop"); got != nil || r.NamespaceRejections.Attempted("shop") {
		t.Errorf("still recorded: %v", got)
	}
}
