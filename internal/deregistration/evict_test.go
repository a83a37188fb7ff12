package deregistration

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/fencing"
)

// evictions is a host that rejects the evictions of Pods by name, unless their status was set to
// Failed.
type evictions struct {
	client.Client
	rejects         map[string]error
	evicted, failed []string
	// recorded contains the lines about what was abandoned.
	recorded []string
}

// noRecords is a host without records of members.
type noRecords struct{ client.Reader }

func (noRecords) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(coordinationv1.Resource("leases"), key.Name)
}

func (e *evictions) Create(_ context.Context, record client.Object, _ ...client.CreateOption) error {
	e.recorded = append(e.recorded, record.GetAnnotations()[v1alpha1.AnnotationLetGo])
	return nil
}

func (e *evictions) SubResource(string) client.SubResourceClient { return &evictionsOf{evictions: e} }
func (e *evictions) Status() client.SubResourceWriter            { return &evictionsOf{evictions: e} }

type evictionsOf struct {
	client.SubResourceClient
	*evictions
}

func (e *evictionsOf) Create(_ context.Context, pod, _ client.Object, _ ...client.SubResourceCreateOption) error {
	if err := e.rejects[pod.GetName()]; err != nil {
		return err
	}
	e.evicted = append(e.evicted, pod.GetName())
	return nil
}

func (e *evictionsOf) Apply(_ context.Context, status runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	applied, ok := status.(interface{ GetName() string })
	if !ok {
		return errors.New("the status has no name")
	}
	e.failed = append(e.failed, applied.GetName())
	delete(e.rejects, applied.GetName())
	return nil
}

// A Pod that the API server does not let Xylem evict does not keep the other Pods, and the
// registration reports why. In a lost member, Pods end regardless of disruption budgets.
func TestEvict(t *testing.T) {
	const budgets = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
	twoBudgets := apierrors.NewInternalError(errors.New(budgets))
	twoBudgets.ErrStatus.Message = budgets
	oneBudget := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	hostile := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "\x1b[2J" + strings.Repeat("x", 9<<10)}}
	for name, tc := range map[string]struct {
		leaving remainingObjects
		rejects map[string]error
		evicted string
		failed  string
		reports []string
		retried bool
	}{
		"all Pods are evicted": {
			leaving: remainingObjects{connected: true}, evicted: "a b", reports: []string{"waiting for 2 Pods to end in the member (shop/a, shop/b)"},
		},
		"a Pod with two budgets, and another Pod": {
			leaving: remainingObjects{connected: true}, rejects: map[string]error{"a": twoBudgets}, evicted: "b", retried: true,
			reports: []string{"the eviction of 1 Pod fails (shop/a: This pod has more than one PodDisruptionBudget", "Xylem retries"},
		},
		"a Pod with two budgets, and one with a budget that blocks it": {
			leaving: remainingObjects{connected: true}, rejects: map[string]error{"a": twoBudgets, "b": oneBudget}, retried: true,
			reports: []string{"PodDisruptionBudgets block the eviction of 1 Pod (shop/b), and the eviction of 1 Pod fails (shop/a: "},
		},
		"a Pod that no longer exists": {
			leaving: remainingObjects{connected: true}, rejects: map[string]error{"a": apierrors.NewNotFound(corev1.Resource("pods"), "a")}, evicted: "b",
		},
		"an error with a terminal escape and much text": {
			leaving: remainingObjects{connected: true}, rejects: map[string]error{"a": hostile}, evicted: "b", retried: true, reports: []string{"shop/a: [2Jxxx"},
		},
		"forced, and the member is connected: budgets apply": {
			leaving: remainingObjects{connected: true, forced: true}, rejects: map[string]error{"a": twoBudgets, "b": oneBudget}, retried: true,
		},
		"forced, and the member is lost: budgets do not apply": {
			leaving: remainingObjects{forced: true}, rejects: map[string]error{"a": twoBudgets, "b": oneBudget}, evicted: "a b", failed: "a b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			host, clock := &evictions{rejects: tc.rejects}, clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
			var reported string
			r := &Deregisterer{
				Client: host, Recorder: events.NewFakeRecorder(10), Clock: clock,
				Records: &fencing.HostRecords{Live: noRecords{}, Namespace: "xylem-system", Clock: clock},
				ReportNotReady: func(_ context.Context, _ *v1alpha1.ClusterRegistration, _, message string) error {
					reported = message
					return nil
				},
			}
			for _, name := range []string{"a", "b"} {
				p := pod(name, corev1.PodRunning, false)
				p.UID = types.UID(name)
				tc.leaving.pods = append(tc.leaving.pods, p)
			}
			err := r.evictPods(t.Context(), &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "left"}}, &tc.leaving)
			if (err != nil) != tc.retried {
				t.Errorf("the error is %v", err)
			}
			if got := strings.Join(host.evicted, " "); got != tc.evicted {
				t.Errorf("evicted %q, want %q", got, tc.evicted)
			}
			if got := strings.Join(host.failed, " "); got != tc.failed {
				t.Errorf("failed %q, want %q", got, tc.failed)
			}
			if len(host.recorded) != len(host.failed) {
				t.Errorf("recorded %q, want a line for each failed Pod", host.recorded)
			}
			for _, part := range tc.reports {
				if !strings.Contains(reported, part) {
					t.Errorf("the report is %q, want %q", reported, part)
				}
			}
			if reported == "" || len(reported) > 1<<10 {
				t.Errorf("the report has %d bytes", len(reported))
			}
		})
	}
}
