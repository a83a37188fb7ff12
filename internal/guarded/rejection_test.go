package guarded

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/xylem-io/xylem/internal/mirror"
)

// host answers all writes with err, and lists pods.
type host struct {
	client.Client
	err  error
	pods []corev1.Pod
}

func (h *host) Create(context.Context, client.Object, ...client.CreateOption) error { return h.err }
func (h *host) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return h.err
}
func (h *host) Delete(context.Context, client.Object, ...client.DeleteOption) error { return h.err }
func (h *host) Status() client.SubResourceWriter                                    { return hostStatus{h: h} }
func (h *host) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, clientgoscheme.Scheme)
}
func (h *host) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.PodList).Items = h.pods
	return nil
}

func (h *host) SubResource(string) client.SubResourceClient { return hostSubresource{h: h} }

type hostSubresource struct {
	client.SubResourceClient
	h *host
}

func (s hostSubresource) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return s.h.err
}

type hostStatus struct {
	client.SubResourceWriter
	h *host
}

func (s hostStatus) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return s.h.err
}

// denied is the response to a write that a webhook rejects without a status.
var denied = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusBadRequest, Message: `admission webhook "rules.example.com" denied the request: no`,
}}

func TestReporter(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "1"}}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}, Spec: corev1.PersistentVolumeSpec{
		ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "1"},
	}}
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": "app"},
	}}
	create := func(ctx context.Context, r *RejectionReporter) error { return r.Create(ctx, pv) }
	patch := func(ctx context.Context, r *RejectionReporter) error {
		return r.Patch(ctx, claim, client.RawPatch("", nil))
	}
	apply := func(ctx context.Context, r *RejectionReporter) error {
		return r.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied))
	}
	wait := func(h *host, err error, write func(context.Context, *RejectionReporter) error, pauses ...time.Duration) []string {
		recorder := events.NewFakeRecorder(8)
		now := testclock.NewFakeClock(time.Unix(1_700_000_000, 0))
		r := NewHostReporter(h, recorder, now, maxUnansweredPatience)
		for _, pause := range append([]time.Duration{0}, pauses...) {
			now.Step(pause)
			h.err = err
			if got := write(t.Context(), r); !errors.Is(got, err) {
				t.Errorf("the write returns %v, and not the API server's error", got)
			}
		}
		close(recorder.Events)
		var emitted []string
		for e := range recorder.Events {
			emitted = append(emitted, e)
		}
		return emitted
	}
	pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "app"}}, {ObjectMeta: metav1.ObjectMeta{Name: "over"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}}
	conflict := apierrors.NewConflict(schema.GroupResource{}, "data", nil)
	terminating := apierrors.NewForbidden(schema.GroupResource{}, "data", nil)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		err    error
		write  func(context.Context, *RejectionReporter) error
		pauses []time.Duration
		want   []string // parts of each event
	}{
		"a rejection that has just begun":               {denied, create, []time.Duration{reportAfter / 2}, nil},
		"a volume: its claim and the claim's Pod":       {denied, create, []time.Duration{reportAfter}, []string{`create PersistentVolume "pvc-1"`, `claim "data": `}},
		"a claim and its Pod":                           {denied, patch, []time.Duration{reportAfter}, []string{`change PersistentVolumeClaim "data"`, `claim "data": `}},
		"a Pod's status":                                {denied, apply, []time.Duration{reportAfter}, []string{`change the status of Pod "app"`}},
		"a webhook that does not respond":               {apierrors.NewInternalError(errors.New("no response")), apply, []time.Duration{reportAfter}, []string{"no response"}},
		"each further attempt, for the event's counter": {denied, apply, []time.Duration{reportAfter, time.Minute}, []string{"rules.example.com", "rules.example.com"}},
		"a rejection long ago":                          {denied, apply, []time.Duration{rejectionMemory + time.Minute}, nil},
		"no response":                                   {context.DeadlineExceeded, create, []time.Duration{maxUnansweredPatience}, []string{"the host does not respond", `claim "data": `}},
		"a slow response":                               {context.DeadlineExceeded, create, []time.Duration{maxUnansweredPatience / 2}, nil},
		"a conflict":                                    {conflict, patch, []time.Duration{reportAfter}, nil},
		"a namespace that is being deleted":             {terminating, patch, []time.Duration{reportAfter}, nil},
		"success":                                       {nil, patch, []time.Duration{reportAfter}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := wait(&host{pods: pods}, test.err, test.write, test.pauses...)
			if !slices.EqualFunc(got, test.want, strings.Contains) {
				t.Errorf("events %q, want %q", got, test.want)
			}
		})
	}
}

// An operator who sets a short fence wants to know early that an API server does not respond.
func TestPatience(t *testing.T) {
	for fence, want := range map[time.Duration]time.Duration{maxUnansweredPatience / 2: maxUnansweredPatience / 2, 30 * time.Second: maxUnansweredPatience, time.Hour: maxUnansweredPatience} {
		if got := UnansweredPatience(fence); got != want {
			t.Errorf("with a fence of %s, patience is %s, want %s", fence, got, want)
		}
	}
}

// The event is on the object that its reader can find: for a capacity, its name is a hash.
func TestUserOf(t *testing.T) {
	owned := metav1.ObjectMeta{Namespace: "xylem-system", Name: "xylem-1f", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "cluster.xylem.io/v1alpha1", Kind: "ClusterRegistration", Name: "one", UID: "2"},
	}}
	for name, tc := range map[string]struct {
		written client.Object
		want    string
	}{
		"a volume": {&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "1"}}},
			"/v1, Kind=PersistentVolumeClaim shop/data 1"},
		"a capacity":                {&storagev1.CSIStorageCapacity{ObjectMeta: owned}, "cluster.xylem.io/v1alpha1, Kind=ClusterRegistration /one 2"},
		"a capacity without owners": {&storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "xylem-system", Name: "xylem-1f"}}, "/, Kind= xylem-system/xylem-1f "},
	} {
		t.Run(name, func(t *testing.T) {
			about := userObjectOf(tc.written)
			if got := fmt.Sprintf("%s %s/%s %s", about.GetObjectKind().GroupVersionKind(), about.GetNamespace(), about.GetName(), about.GetUID()); got != tc.want {
				t.Errorf("the event is on %s, want %s", got, tc.want)
			}
		})
	}
}

func TestReporterForgetsARejectionAfterASuccess(t *testing.T) {
	h := &host{}
	recorder := events.NewFakeRecorder(8)
	now := testclock.NewFakeClock(time.Unix(1_700_000_000, 0))
	r := NewHostReporter(h, recorder, now, maxUnansweredPatience)
	for _, err := range []error{denied, nil, denied} {
		h.err = err
		_ = r.Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}})
		now.Step(reportAfter)
	}
	if len(recorder.Events) > 0 {
		t.Errorf("an event reports a rejection that did not persist: %s", <-recorder.Events)
	}
}

// TestReporterOfAMember checks which rejections of a member are reported, and on which object.
func TestReporterOfAMember(t *testing.T) {
	stamp := func(obj client.Object) client.Object {
		origin := mirror.Origin{HostID: "host", Root: types.NamespacedName{Namespace: "shop", Name: "data"}, UID: "1"}
		obj.SetLabels(origin.StampLabels())
		obj.SetAnnotations(origin.StampAnnotations())
		return obj
	}
	named := metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "2"}
	claim := stamp(&corev1.PersistentVolumeClaim{ObjectMeta: named})
	pv := stamp(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-2"}})
	pod := stamp(&corev1.Pod{ObjectMeta: named})
	resize := func(ctx context.Context, r *RejectionReporter) error {
		return r.SubResource("resize").Patch(ctx, pod, nil)
	}
	for name, test := range map[string]struct {
		err   error
		write func(context.Context, *RejectionReporter) error
		want  []string
	}{
		"a deletion":                            {denied, func(ctx context.Context, r *RejectionReporter) error { return r.Delete(ctx, claim) }, []string{`does not let Xylem delete PersistentVolumeClaim "data"`, `claim "data": `}},
		"a change to a volume, on its claim":    {denied, func(ctx context.Context, r *RejectionReporter) error { return r.Patch(ctx, pv, nil) }, []string{`change PersistentVolume "pvc-2"`, `claim "data": `}},
		"a change that root_pvc reports itself": {denied, func(ctx context.Context, r *RejectionReporter) error { return r.Patch(ctx, claim, nil) }, nil},
		"a new claim, which root_pvc reports":   {denied, func(ctx context.Context, r *RejectionReporter) error { return r.Create(ctx, claim) }, nil},
		"a new claim, without a response":       {context.DeadlineExceeded, func(ctx context.Context, r *RejectionReporter) error { return r.Create(ctx, claim) }, []string{"does not respond", `claim "data": `}},
		"a resize, which root_pod reports":      {denied, resize, nil},
		"a resize, without a response":          {context.DeadlineExceeded, resize, []string{`does not respond when Xylem tries to change the subresource resize of Pod "data"`}},
		"a foreign object": {denied, func(ctx context.Context, r *RejectionReporter) error {
			return r.Delete(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: named})
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := &host{err: test.err, pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "app"}}}}
			recorder := events.NewFakeRecorder(8)
			now := testclock.NewFakeClock(time.Unix(1_700_000_000, 0))
			r := NewMemberReporter(h, "host", "east", h, recorder, now, maxUnansweredPatience)
			for range 2 {
				_ = test.write(t.Context(), r)
				now.Step(maxUnansweredPatience)
			}
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if !slices.EqualFunc(got, test.want, strings.Contains) {
				t.Errorf("events %q, want %q", got, test.want)
			}
		})
	}
}
