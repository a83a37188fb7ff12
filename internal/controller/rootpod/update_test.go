package rootpod

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/news"
)

// patches answers each patch with the next of its errors.
type patches struct {
	client.Client
	answers []error
}

func (p *patches) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	err := p.answers[0]
	p.answers = p.answers[1:]
	return err
}

// SubResource returns a client whose patches are answered, too.
func (p *patches) SubResource(string) client.SubResourceClient { return &subresourcePatches{of: p} }

type subresourcePatches struct {
	client.SubResourceClient
	of *patches
}

func (s *subresourcePatches) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.of.Patch(ctx, obj, patch)
}

// A rejected update is reported with one event for each cause, and the root's condition, which has
// the UID of the running leaf, does not change: the reconciler has no client for the host.
func TestRefusedUpdate(t *testing.T) {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New(why))
	}
	event := func(why string) string {
		return `Warning RefusedByMember the Pod runs in member "cluster38" without its latest change, because the member does not let Xylem update the Pod: pods "web" is forbidden: ` +
			why + `. Undo the change, or ask the member's admin to change the policy`
	}
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		answers []error
		want    []string
	}{
		"the member accepts it":                        {[]error{nil}, nil},
		"the member is down":                           {[]error{down, down}, nil},
		"the member rejects each attempt":              {[]error{forbidden("policy"), forbidden("policy"), forbidden("policy")}, []string{event("policy")}},
		"the member then rejects it for another cause": {[]error{forbidden("policy"), forbidden("quota")}, []string{event("policy"), event("quota")}},
		"the member rejects a later update as well":    {[]error{forbidden("policy"), nil, forbidden("policy")}, []string{event("policy"), event("policy")}},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(onNode, running, pushed(here, corev1.ConditionTrue))
			o.Root.Spec.Containers[0].Image = "web:2"
			o.Origin.StampLeaf(o.Leaf)
			recorder := events.NewFakeRecorder(len(tc.answers))
			answers := &patches{answers: tc.answers}
			r := &reconciler{news: news.New(clock.RealClock{}), Link: &member.Link{
				Member: here, Recorder: recorder, Clock: clock.RealClock{},
				MemberWriter: guarded.NewMemberWriter(answers, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}}
			for _, answer := range tc.answers {
				d, updates := lifecycle.NextDecision(o).(lifecycle.UpdateLeaf)
				if !updates {
					t.Fatalf("decision is %T, want an update", lifecycle.NextDecision(o))
				}
				if err := r.executeDecision(t.Context(), o, d); !errors.Is(err, answer) {
					t.Errorf("error is %v, want %v", err, answer)
				}
			}
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// A resize is recorded. A rejected one is reported with one event for each cause, and does not keep other changes from
// the leaf.
func TestResize(t *testing.T) {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New(why))
	}
	event := func(why string) string {
		return `Warning NotResized the Pod runs in member "cluster38" with its earlier resources, because the member does not let Xylem resize the Pod: pods "web" is forbidden: ` +
			why + `. Resize the Pod to what the member allows, or ask the member's admin to change the quota, LimitRange or policy`
	}
	down := errors.New("connection refused")
	notServed := apierrors.NewNotFound(schema.GroupResource{Resource: "pods/resize"}, "web")
	for name, tc := range map[string]struct {
		cpu     string
		label   bool
		answers []error // to the resizes, each followed by another write if that is accepted or if there is a label
		attempt int
		wantErr error
		want    []string
	}{
		"the member accepts it":                                {cpu: "2", answers: []error{nil, nil}, attempt: 1},
		"the member is down":                                   {cpu: "2", answers: []error{down}, attempt: 1, wantErr: down},
		"the member is down before the record is written":      {cpu: "2", answers: []error{nil, down}, attempt: 1, wantErr: down},
		"the member does not serve resizes: the label is sent": {cpu: "2", label: true, answers: []error{notServed, nil}, attempt: 1, wantErr: notServed},
		"the member rejects each attempt":                      {cpu: "2", answers: []error{forbidden("quota"), forbidden("quota")}, attempt: 2, wantErr: forbidden("quota"), want: []string{event("quota")}},
		"the member then rejects it for another cause":         {cpu: "2", answers: []error{forbidden("quota"), forbidden("policy")}, attempt: 2, wantErr: forbidden("quota"), want: []string{event("quota"), event("policy")}},
		"the member rejects it, but not a label":               {cpu: "2", label: true, answers: []error{forbidden("quota"), nil}, attempt: 1, wantErr: forbidden("quota"), want: []string{event("quota")}},
		"the amount is out of range: only the label is sent":   {cpu: "1e102", label: true, answers: []error{nil}, attempt: 1, want: []string{`Warning NotResized the Pod runs in member "cluster38" with its earlier resources: spec.containers[web].resources.requests[cpu]: the quantity is out of range. Resize the Pod to usual amounts`}},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(onNode, running, pushed(here, corev1.ConditionTrue))
			o.Root.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(tc.cpu)}
			if tc.label {
				o.Root.Labels = map[string]string{"app": "web"}
			}
			o.Origin.StampLeaf(o.Leaf)
			recorder := events.NewFakeRecorder(len(tc.answers))
			answers := &patches{answers: tc.answers}
			r := &reconciler{news: news.New(clock.RealClock{}), Link: &member.Link{
				Member: here, Recorder: recorder, Clock: clock.RealClock{},
				MemberWriter: guarded.NewMemberWriter(answers, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}}
			for i := range tc.attempt {
				d, resizes := lifecycle.NextDecision(o).(lifecycle.ResizeLeaf)
				if !resizes {
					t.Fatalf("decision is %T, want a resize", lifecycle.NextDecision(o))
				}
				err := r.executeDecision(t.Context(), o, d)
				if (err == nil) != (tc.wantErr == nil) || err != nil && i == 0 && !strings.Contains(err.Error(), tc.wantErr.Error()) {
					t.Errorf("error is %v, want %v", err, tc.wantErr)
				}
			}
			if len(answers.answers) > 0 {
				t.Errorf("%d writes are missing", len(answers.answers))
			}
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// A Pod that had a leaf does not get another one, so a reference that cannot be read must not
// change its condition.
func TestReferencesOfVanishedLeaf(t *testing.T) {
	o := seen(onNode, pushed(here, corev1.ConditionTrue))
	r := &reconciler{Link: &member.Link{Member: here}} // has no client, so each read would panic
	if err := r.observeReferences(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
}
