package fence_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/fencing"
)

const (
	namespace = v1alpha1.DefaultNamespace
	duration  = 15 * time.Second
)

// world is one host and one member, with their own fake clock.
type world struct {
	hostID, clusterID string
	clock             *clocktesting.FakeClock
}

var worlds int

func newWorld() *world {
	worlds++
	return &world{hostID: fmt.Sprintf("host-%d", worlds), clusterID: fmt.Sprintf("member-%d", worlds), clock: clocktesting.NewFakeClock(time.Now())}
}

// manager returns the fence of a manager process. The hooks, if given, intercept its writes to the
// member and the host.
func (w *world) manager(identity string, through ...interceptor.Funcs) *fencing.Fence {
	m, h := api, api
	if len(through) > 0 {
		m = hooked{api, through[0]}
	}
	if len(through) > 1 {
		h = hooked{api, through[1]}
	}
	return fencing.NewFence(fencing.FenceOptions{
		Clock: w.clock, Member: m, Host: h, Namespace: namespace,
		HostID: w.hostID, ClusterID: w.clusterID, Identity: identity, Duration: duration,
	})
}

// noted adds an annotation to the Lease if it is missing.
func noted(key string) func(*coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return func(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if _, has := lease.Annotations[key]; has {
			return lease, nil
		}
		after := lease.DeepCopy()
		after.Annotations[key] = "noted"
		return after, nil
	}
}

// hooked is a client that calls interceptors instead of the real API server.
type hooked struct {
	client.Client
	funcs interceptor.Funcs
}

func (h hooked) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if h.funcs.Get == nil {
		return h.Client.Get(ctx, key, obj, opts...)
	}
	return h.funcs.Get(ctx, nil, key, obj, opts...)
}

func (h hooked) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if h.funcs.Create == nil {
		return h.Client.Create(ctx, obj, opts...)
	}
	return h.funcs.Create(ctx, nil, obj, opts...)
}

func (h hooked) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if h.funcs.Patch == nil {
		return h.Client.Patch(ctx, obj, patch, opts...)
	}
	return h.funcs.Patch(ctx, nil, obj, patch, opts...)
}

var errCut = errors.New("the connection was cut")

// cut fails the nth write and all later ones before they arrive. If replies is set, the nth write
// succeeds, but its response is lost.
func cut(nth int, replies bool) interceptor.Funcs {
	n := 0
	write := func(do func() error) error {
		n++
		if n < nth {
			return do()
		}
		if n == nth && replies {
			if err := do(); err != nil {
				return err
			}
		}
		return errCut
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, _ client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return write(func() error { return api.Create(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return write(func() error { return api.Patch(ctx, obj, patch, opts...) })
		},
	}
}

// losing loses the response to the next patch if lose is set.
func losing(lose *bool) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		if *lose {
			*lose = false
			Expect(api.Patch(ctx, obj.DeepCopyObject().(client.Object), patch, opts...)).To(Succeed())
			return errCut
		}
		return api.Patch(ctx, obj, patch, opts...)
	}}
}

// delayed is a patch whose sender has stopped waiting for the response.
type delayed struct{ arrive func(context.Context) error }

// delaying delays the nth patch: its sender gets an error. The patch after it arrives just after
// the delayed one if overtaken is set.
func delaying(nth int, overtaken bool) (*delayed, interceptor.Funcs) {
	n, d := 0, &delayed{}
	return d, interceptor.Funcs{Patch: func(ctx context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		n++
		if n == nth {
			sent := obj.DeepCopyObject().(client.Object)
			d.arrive = func(ctx context.Context) error { return api.Patch(ctx, sent, patch, opts...) }
			return errCut
		}
		if n == nth+1 && overtaken {
			Expect(d.arrive(ctx)).To(Succeed())
		}
		return api.Patch(ctx, obj, patch, opts...)
	}}
}

// restoredUnder restores the member to its state before the last renewal of a manager's fence, and
// returns that fence.
func (w *world) restoredUnder(ctx context.Context) *fencing.Fence {
	GinkgoHelper()
	a := w.manager("a")
	Expect(a.AcquireLease(ctx, "")).To(Succeed())
	backup := w.lease(ctx)
	w.clock.Step(time.Second)
	Expect(a.RenewLease(ctx)).To(Succeed())
	restore(ctx, w.hostID, backup)
	return a
}

// revisions reads from the real API server, but returns a chosen revision.
type revisions struct {
	client.Reader
	at *uint64
}

func (r revisions) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := r.Reader.List(ctx, list, opts...)
	list.SetResourceVersion(strconv.FormatUint(*r.at, 10))
	return err
}

// lease and record return the Lease in the member and the record in the host.
func (w *world) lease(ctx context.Context) *coordinationv1.Lease { return read(ctx, w.hostID) }

func (w *world) record(ctx context.Context) *coordinationv1.Lease {
	return read(ctx, "fence-"+w.clusterID)
}

func read(ctx context.Context, name string) *coordinationv1.Lease {
	GinkgoHelper()
	var lease coordinationv1.Lease
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &lease)).To(Succeed())
	return &lease
}

// restore restores a lease to an earlier state.
func restore(ctx context.Context, name string, was *coordinationv1.Lease) {
	GinkgoHelper()
	now := read(ctx, name)
	Expect(api.Delete(ctx, now)).To(Succeed())
	if was != nil {
		Expect(api.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: was.Labels, Annotations: was.Annotations},
			Spec:       was.Spec,
		})).To(Succeed())
	}
}

func epochOf(lease *coordinationv1.Lease) string {
	return lease.Annotations[v1alpha1.AnnotationFenceEpoch]
}

func beProblem(reason string) types.GomegaMatcher {
	return WithTransform(func(err error) string {
		p := &access.ConnectionProblem{}
		if !errors.As(err, &p) {
			return fmt.Sprintf("not a Problem: %v", err)
		}
		return p.Reason
	}, Equal(reason))
}

// token returns the confirmation that a Problem requests.
func token(p *access.ConnectionProblem) string {
	GinkgoHelper()
	Expect(p).To(HaveOccurred())
	_, value, found := strings.Cut(p.Message, v1alpha1.AnnotationConfirmRestore+"=")
	Expect(found).To(BeTrue(), p.Message)
	return value
}

var _ = Describe("the fence", func() {
	var w *world
	BeforeEach(func() { w = newWorld() })

	It("is acquired, renewed and released", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(a.CheckFenceHeld()).To(Succeed())
		Expect(a.CheckNotSuspended()).To(Succeed())
		lease := w.lease(ctx)
		Expect(lease.Spec.HolderIdentity).To(HaveValue(Equal("a")))
		Expect(epochOf(lease)).To(Equal("1"))
		Expect(epochOf(w.record(ctx))).To(Equal("1"))
		Expect(lease.Labels).To(HaveKeyWithValue(v1alpha1.LabelHost, w.hostID))

		w.clock.Step(duration / 3)
		Expect(a.RenewLease(ctx)).To(Succeed())
		Expect(w.lease(ctx).Spec.RenewTime.Time).To(BeTemporally("~", w.clock.Now(), time.Millisecond))

		Expect(a.ReleaseLease(ctx)).To(Succeed())
		Expect(a.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))
		Expect(a.RenewLease(ctx)).To(MatchError(guarded.ErrFenced))
		b := w.manager("b")
		Expect(b.AcquireLease(ctx, "")).To(Succeed(), "a released fence need not expire")
		Expect(epochOf(w.lease(ctx))).To(Equal("2"), "each leadership term has its own epoch")
		Expect(b.CheckNotSuspended()).To(Succeed())
	}, NodeTimeout(timeout))

	It("keeps its epoch when the same leader reconnects", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		record := w.record(ctx)
		a.StopWrites()
		Expect(a.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(epochOf(w.lease(ctx))).To(Equal("1"))
		Expect(w.record(ctx).ResourceVersion).To(Equal(record.ResourceVersion), "nothing must be written to the host")
	}, NodeTimeout(timeout))

	It("is held by only one of two managers of the same host", func(ctx SpecContext) {
		a, b := w.manager("a"), w.manager("b")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(b.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))

		By("the holder renews the fence, so it is a running copy of this host")
		w.clock.Step(duration / 3)
		Expect(a.RenewLease(ctx)).To(Succeed())
		Expect(b.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonHostCloned))
		w.clock.Step(duration - time.Second)
		Expect(b.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonHostCloned), "the Lease has not expired by this process's clock")
		Expect(b.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))

		By("another manager takes over the fence once its duration has passed without a renewal")
		w.clock.Step(time.Second)
		Expect(b.AcquireLease(ctx, "")).To(Succeed())
		Expect(b.CheckFenceHeld()).To(Succeed())
		Expect(a.CheckFenceHeld()).To(MatchError(guarded.ErrFenced), "the old holder was already fenced by its own clock")
		Expect(a.RenewLease(ctx)).To(beProblem(v1alpha1.ReasonHostCloned))
		Expect(a.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
		Expect(epochOf(w.lease(ctx))).To(Equal("2"))
	}, NodeTimeout(timeout))

	It("fences a process that was frozen for longer than the deadline", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		w.clock.Step(duration * 2 / 3)
		Expect(a.CheckFenceHeld()).To(Succeed())
		w.clock.Step(time.Nanosecond)
		Expect(a.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))

		By("the process continues if no other manager acquired the fence in the meantime")
		Expect(a.RenewLease(ctx)).To(Succeed())
		Expect(a.CheckFenceHeld()).To(Succeed())
	}, NodeTimeout(timeout))

	It("survives a renewal whose response was lost", func(ctx SpecContext) {
		lose := false
		a := w.manager("a", interceptor.Funcs{Patch: func(ctx context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			sent := obj.DeepCopyObject().(client.Object)
			if lose {
				lose = false
				Expect(api.Patch(ctx, sent, patch, opts...)).To(Succeed())
				return errCut
			}
			return api.Patch(ctx, obj, patch, opts...)
		}})
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		lose = true
		w.clock.Step(time.Second)
		Expect(a.RenewLease(ctx)).To(beProblem(v1alpha1.ReasonUnreachable))
		Expect(a.CheckFenceHeld()).To(Succeed())
		w.clock.Step(time.Second)
		Expect(a.RenewLease(ctx)).To(Succeed(), "the conflict is with this process's own write")
		Expect(a.CheckFenceHeld()).To(Succeed())
	}, NodeTimeout(timeout))

	It("does not mistake an edit to the Lease for a renewal", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		lease := w.lease(ctx)
		edited := lease.DeepCopy()
		edited.Annotations["team"] = "storage"
		Expect(api.Patch(ctx, edited, client.MergeFrom(lease))).To(Succeed())
		w.clock.Step(duration / 3)
		Expect(a.RenewLease(ctx)).To(Succeed())
		Expect(w.lease(ctx).Spec.RenewTime.Time).To(BeTemporally("~", w.clock.Now(), time.Millisecond),
			"the Lease must contain the renewal that its holder sent")
	}, NodeTimeout(timeout))

	It("is lost if the lease has another epoch", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		lease := w.lease(ctx)
		edited := lease.DeepCopy()
		edited.Annotations[v1alpha1.AnnotationFenceEpoch] = "7"
		Expect(api.Patch(ctx, edited, client.MergeFrom(lease))).To(Succeed())
		Expect(a.RenewLease(ctx)).To(beProblem(v1alpha1.ReasonHostCloned))
		Expect(a.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))
	}, NodeTimeout(timeout))

	It("is released even if the response to the last renewal was lost", func(ctx SpecContext) {
		lose := false
		a := w.manager("a", losing(&lose))
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		w.clock.Step(time.Second)
		lose = true
		Expect(a.RenewLease(ctx)).To(HaveOccurred())
		Expect(a.ReleaseLease(ctx)).To(Succeed())
		Expect(w.manager("b").AcquireLease(ctx, "")).To(Succeed(), "another manager need not wait until the Lease expires")
	}, NodeTimeout(timeout))

	It("is held by only one of two registrations for the same cluster in one process (I3)", func(ctx SpecContext) {
		first, second := w.manager("a/first"), w.manager("a/second")
		Expect(first.AcquireLease(ctx, "")).To(Succeed())
		Expect(second.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
		for range 4 {
			w.clock.Step(duration / 3)
			Expect(first.RenewLease(ctx)).To(Succeed())
			Expect(second.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonHostCloned))
			Expect(second.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))
		}
		Expect(first.ReleaseLease(ctx)).To(Succeed())
		Expect(second.AcquireLease(ctx, "")).To(Succeed())
		Expect(first.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))
	}, NodeTimeout(timeout))

	It("is not released in a member that was restored since the last renewal, and the next manager detects the restore", func(ctx SpecContext) {
		a := w.restoredUnder(ctx)
		Expect(a.ReleaseLease(ctx)).To(Succeed())

		b := w.manager("b")
		Expect(b.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
		w.clock.Step(duration)
		Expect(b.AcquireLease(ctx, "")).To(Succeed())
		Expect(b.CheckNotSuspended()).To(MatchError(guarded.ErrSuspended))
		Expect(b.SuspensionProblem().Reason).To(Equal(v1alpha1.ReasonMemberRestored))
	}, NodeTimeout(timeout))

	// The caches received objects after the last renewal, and the restored member has neither.
	DescribeTable("detects that the member was restored to a state with the last renewal (I2)", func(ctx SpecContext, detect func(context.Context, *fencing.Fence)) {
		a := w.manager("a")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		var pods corev1.PodList
		Expect(api.List(ctx, &pods)).To(Succeed())
		a.RecordRevision(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: pods.ResourceVersion}})
		w.clock.Step(time.Second)
		Expect(a.CheckMemberCurrent(ctx)).To(Succeed())
		Expect(a.RenewLease(ctx)).To(Succeed())

		a.RecordRevision(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: pods.ResourceVersion + "0"}})
		w.clock.Step(time.Second)
		Expect(a.CheckMemberCurrent(ctx)).To(MatchError(guarded.ErrFenced))
		detect(ctx, a)
		Expect(a.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))

		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(a.SuspensionProblem().Reason).To(Equal(v1alpha1.ReasonMemberRestored))
		Expect(a.CheckMemberCurrent(ctx)).To(Succeed())
		w.clock.Step(time.Second)
		Expect(a.RenewLease(ctx)).To(Succeed())

		By("confirming the restore")
		Expect(a.AcquireLease(ctx, token(a.SuspensionProblem()))).To(Succeed())
		Expect(a.CheckNotSuspended()).To(Succeed())
	},
		Entry("with the next renewal", func(ctx context.Context, a *fencing.Fence) {
			Expect(a.RenewLease(ctx)).To(beProblem(v1alpha1.ReasonMemberRestored))
		}, NodeTimeout(timeout)),
		Entry("when the manager reconnects", func(_ context.Context, a *fencing.Fence) { a.StopWrites() }, NodeTimeout(timeout)),
	)

	// Acquire writes to the host twice: the intent (1) and the fact (2). It writes to the member once:
	// the Lease (1).
	DescribeTable("does not mistake a crash during a clean stop for a restore (I6)", func(ctx SpecContext, toMember, toHost interceptor.Funcs, released bool) {
		a := w.manager("a", toMember, toHost)
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(a.TakeFinalEpoch(ctx)).NotTo(Succeed())
		_ = a.ReleaseLease(ctx)
		if !released {
			w.clock.Step(duration + time.Second)
		}
		b := w.manager("b")
		if !released {
			Expect(b.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
			w.clock.Step(duration + time.Second)
		}
		Expect(b.AcquireLease(ctx, "")).To(Succeed())
		Expect(b.SuspensionProblem()).To(Succeed())
		Expect(epochOf(w.lease(ctx))).To(Equal(epochOf(w.record(ctx))))
	},
		Entry("before the intent is recorded", interceptor.Funcs{}, cut(3, false), true),
		Entry("after the intent is recorded", interceptor.Funcs{}, cut(3, true), true),
		Entry("before the Lease is written", cut(2, false), interceptor.Funcs{}, false),
		Entry("after the Lease is written", cut(2, true), interceptor.Funcs{}, false),
		Entry("before the reached epoch is recorded", interceptor.Funcs{}, cut(4, false), true),
		Entry("after the reached epoch is recorded", interceptor.Funcs{}, cut(4, true), true),
	)

	DescribeTable("takes its last epoch although the Lease has changed (I2)", func(ctx SpecContext, change func(context.Context, *fencing.Fence, *bool)) {
		lose := false
		a := w.manager("a", losing(&lose))
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		w.clock.Step(time.Second)
		change(ctx, a, &lose)
		before, backup := epochOf(w.lease(ctx)), w.record(ctx)
		Expect(a.TakeFinalEpoch(ctx)).To(Succeed())
		Expect(a.ReleaseLease(ctx)).To(Succeed())
		Expect(epochOf(w.lease(ctx))).NotTo(Equal(before))
		Expect(epochOf(w.lease(ctx))).To(Equal(epochOf(w.record(ctx))))
		b := w.manager("b")
		Expect(b.AcquireLease(ctx, "")).To(Succeed(), "the fence must be released")
		Expect(b.SuspensionProblem()).To(Succeed())
		Expect(b.ReleaseLease(ctx)).To(Succeed())

		By("restoring the host from a backup that was made before the stop")
		restore(ctx, "fence-"+w.clusterID, backup)
		c := w.manager("c")
		Expect(c.AcquireLease(ctx, "")).To(Succeed())
		Expect(c.SuspensionProblem().Reason).To(Equal(v1alpha1.ReasonHostRestored))
	},
		Entry("because the response to an advance was lost", func(ctx context.Context, a *fencing.Fence, lose *bool) {
			*lose = true
			Expect(a.AdvanceEpoch(ctx)).To(beProblem(v1alpha1.ReasonUnreachable))
		}),
		Entry("because the response to a renewal was lost", func(ctx context.Context, a *fencing.Fence, lose *bool) {
			*lose = true
			Expect(a.RenewLease(ctx)).To(beProblem(v1alpha1.ReasonUnreachable))
		}),
		Entry("because a note was written after a conflict", func(ctx context.Context, a *fencing.Fence, _ *bool) {
			edited := w.lease(ctx)
			edited.Labels["team"] = "storage"
			Expect(api.Update(ctx, edited)).To(Succeed())
			Expect(a.AnnotateLease(ctx, noted("first"))).To(Succeed())
		}),
	)

	// The member's Lease and the host's record are at epoch 1, and the Lease is not held.
	DescribeTable("does not mistake a delayed write to the member for a restore (I6)", func(ctx SpecContext, delay func(context.Context)) {
		first := w.manager("first")
		Expect(first.AcquireLease(ctx, "")).To(Succeed())
		Expect(first.ReleaseLease(ctx)).To(Succeed())
		delay(ctx)
		Expect(epochOf(w.lease(ctx))).NotTo(Equal(epochOf(w.record(ctx))), "the delayed write must be the last one")

		next := w.manager("next")
		Expect(next.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
		w.clock.Step(duration)
		Expect(next.AcquireLease(ctx, "")).To(Succeed())
		Expect(next.SuspensionProblem()).To(Succeed())
		Expect(next.CheckNotSuspended()).To(Succeed())
		Expect(epochOf(w.lease(ctx))).To(Equal(epochOf(w.record(ctx))))
	},
		Entry("if an advance arrives during a clean stop", func(ctx context.Context) {
			advance, funcs := delaying(2, true)
			a := w.manager("a", funcs)
			Expect(a.AcquireLease(ctx, "")).To(Succeed())
			Expect(a.AdvanceEpoch(ctx)).NotTo(Succeed())
			Expect(a.TakeFinalEpoch(ctx)).NotTo(Succeed())
			Expect(a.ReleaseLease(ctx)).To(Succeed())
			Expect(advance.arrive(ctx)).NotTo(Succeed(), "a delayed write arrives once")
		}),
		Entry("if an acquisition arrives during the next attempt", func(ctx context.Context) {
			_, funcs := delaying(1, true)
			a := w.manager("a", funcs)
			Expect(a.AcquireLease(ctx, "")).NotTo(Succeed())
			Expect(a.AcquireLease(ctx, "")).NotTo(Succeed())
		}),
		Entry("if a frozen leader's advance arrives after the next leader has ended", func(ctx context.Context) {
			advance, funcs := delaying(2, false)
			a := w.manager("a", funcs)
			Expect(a.AcquireLease(ctx, "")).To(Succeed())
			Expect(a.AdvanceEpoch(ctx)).NotTo(Succeed())
			b := w.manager("b", cut(1, false))
			Expect(b.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
			w.clock.Step(duration)
			Expect(b.AcquireLease(ctx, "")).NotTo(Succeed(), "it must end between the intent and the Lease")
			Expect(advance.arrive(ctx)).To(Succeed())
		}),
	)

	It("leaves a deregistered member alone when it stops", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(api.Delete(ctx, w.record(ctx))).To(Succeed())
		epoch := epochOf(w.lease(ctx))
		Expect(a.TakeFinalEpoch(ctx)).To(Succeed())
		Expect(epochOf(w.lease(ctx))).To(Equal(epoch))
		Expect(apierrors.IsNotFound(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "fence-" + w.clusterID}, &coordinationv1.Lease{}))).To(BeTrue())
		Expect(a.ReleaseLease(ctx)).To(Succeed())
		Expect(w.lease(ctx).Spec.HolderIdentity).To(BeNil())
	}, NodeTimeout(timeout))

	DescribeTable("does not mistake a crash during acquisition for a restore (I6)", func(ctx SpecContext, crashes ...[2]interceptor.Funcs) {
		first := w.manager("first")
		Expect(first.AcquireLease(ctx, "")).To(Succeed())
		Expect(first.ReleaseLease(ctx)).To(Succeed())
		for i, crash := range crashes {
			err := w.manager(fmt.Sprintf("crashes-%d", i), crash[0], crash[1]).AcquireLease(ctx, "")
			Expect(err).To(HaveOccurred())
			w.clock.Step(duration) // in case it acquired the Lease
		}
		next := w.manager("next")
		err := next.AcquireLease(ctx, "")
		if err != nil { // the first time that it observes the crashed manager's Lease
			Expect(err).To(beProblem(v1alpha1.ReasonWaitingForFence))
			w.clock.Step(duration)
			Expect(next.AcquireLease(ctx, "")).To(Succeed())
		}
		Expect(next.SuspensionProblem()).To(Succeed())
		Expect(next.CheckNotSuspended()).To(Succeed())
		Expect(epochOf(w.lease(ctx))).To(Equal(epochOf(w.record(ctx))))
	},
		Entry("before the intent", [2]interceptor.Funcs{{}, cut(1, false)}),
		Entry("after the intent, with a lost response", [2]interceptor.Funcs{{}, cut(1, true)}),
		Entry("before the lease", [2]interceptor.Funcs{cut(1, false), {}}),
		Entry("after the lease, with a lost response", [2]interceptor.Funcs{cut(1, true), {}}),
		Entry("before the fact", [2]interceptor.Funcs{{}, cut(2, false)}),
		Entry("after the fact, with a lost response", [2]interceptor.Funcs{{}, cut(2, true)}),
		Entry("two crashes before the lease", [2]interceptor.Funcs{cut(1, false), {}}, [2]interceptor.Funcs{cut(1, false), {}}),
	)

	It("does not mistake a crash after the Lease and another after the next intent for a restore (I6)", func(ctx SpecContext) {
		first := w.manager("first")
		Expect(first.AcquireLease(ctx, "")).To(Succeed())
		Expect(first.ReleaseLease(ctx)).To(Succeed())
		Expect(w.manager("second", interceptor.Funcs{}, cut(2, false)).AcquireLease(ctx, "")).To(MatchError(errCut))

		third := w.manager("third", cut(1, false))
		Expect(third.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
		w.clock.Step(duration)
		Expect(third.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonUnreachable), "it must crash between the intent and the Lease")

		fourth := w.manager("fourth")
		Expect(fourth.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
		w.clock.Step(duration)
		Expect(fourth.AcquireLease(ctx, "")).To(Succeed())
		Expect(fourth.SuspensionProblem()).To(Succeed())
		Expect(epochOf(w.lease(ctx))).To(Equal(epochOf(w.record(ctx))))
	}, NodeTimeout(timeout))

	// restored runs three leadership terms, and then restores one cluster.
	restored := func(ctx SpecContext, what func(lease, record *coordinationv1.Lease)) {
		for i := range 3 {
			a := w.manager(fmt.Sprintf("before-%d", i))
			Expect(a.AcquireLease(ctx, "")).To(Succeed())
			Expect(a.ReleaseLease(ctx)).To(Succeed())
			if i == 0 {
				lease, record := w.lease(ctx), w.record(ctx)
				defer func() { what(lease, record) }()
			}
		}
	}
	suspendedUntilConfirmed := func(ctx SpecContext, reason string) {
		lease, record := w.lease(ctx), w.record(ctx)
		a := w.manager("after")
		Expect(a.AcquireLease(ctx, "")).To(Succeed(), "the manager must connect and serve")
		Expect(a.CheckFenceHeld()).To(Succeed())
		Expect(a.CheckNotSuspended()).To(MatchError(guarded.ErrSuspended))
		Expect(a.SuspensionProblem().Reason).To(Equal(reason))
		Expect(epochOf(w.lease(ctx))).To(Equal(epochOf(lease)), "the evidence must remain")
		Expect(epochOf(w.record(ctx))).To(Equal(epochOf(record)))

		By("another manager, or the wrong confirmation, does not end the suspension")
		confirmation := token(a.SuspensionProblem())
		Expect(a.ReleaseLease(ctx)).To(Succeed())
		b := w.manager("after-2")
		Expect(b.AcquireLease(ctx, "host-0-member-0")).To(Succeed())
		Expect(b.CheckNotSuspended()).To(MatchError(guarded.ErrSuspended))
		Expect(b.ReleaseLease(ctx)).To(Succeed())

		By("the admin confirms the restore")
		c := w.manager("after-3")
		Expect(c.AcquireLease(ctx, confirmation)).To(Succeed())
		Expect(c.CheckNotSuspended()).To(Succeed())
		Expect(c.SuspensionProblem()).To(Succeed())
		Expect(epochOf(w.lease(ctx))).To(Equal(epochOf(w.record(ctx))))
		Expect(epochOf(w.lease(ctx))).To(Equal("4"), "epochs only increase")

		By("the confirmation is not requested again")
		Expect(c.ReleaseLease(ctx)).To(Succeed())
		d := w.manager("after-4")
		Expect(d.AcquireLease(ctx, "")).To(Succeed())
		Expect(d.CheckNotSuspended()).To(Succeed())
	}

	It("suspends destruction when the host was restored (I2)", func(ctx SpecContext) {
		restored(ctx, func(_, record *coordinationv1.Lease) { restore(ctx, "fence-"+w.clusterID, record) })
		suspendedUntilConfirmed(ctx, v1alpha1.ReasonHostRestored)
	}, NodeTimeout(timeout))

	It("suspends destruction when the host's record is missing (I2)", func(ctx SpecContext) {
		restored(ctx, func(_, record *coordinationv1.Lease) {
			record.Annotations = nil
			restore(ctx, "fence-"+w.clusterID, record)
		})
		suspendedUntilConfirmed(ctx, v1alpha1.ReasonHostRestored)
	}, NodeTimeout(timeout))

	It("suspends destruction when the member was restored (I2)", func(ctx SpecContext) {
		restored(ctx, func(lease, _ *coordinationv1.Lease) {
			lease.Spec.HolderIdentity = nil
			restore(ctx, w.hostID, lease)
		})
		suspendedUntilConfirmed(ctx, v1alpha1.ReasonMemberRestored)
	}, NodeTimeout(timeout))

	It("suspends destruction when the member was restored to a state before its registration (I2)", func(ctx SpecContext) {
		restored(ctx, func(*coordinationv1.Lease, *coordinationv1.Lease) { restore(ctx, w.hostID, nil) })
		a := w.manager("after")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(a.CheckNotSuspended()).To(MatchError(guarded.ErrSuspended))
		Expect(a.SuspensionProblem().Reason).To(Equal(v1alpha1.ReasonMemberRestored))
		confirmation := token(a.SuspensionProblem())
		Expect(a.AcquireLease(ctx, confirmation)).To(Succeed())
		Expect(a.CheckNotSuspended()).To(Succeed())
	}, NodeTimeout(timeout))

	It("gets new epochs while the leader does not change", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.AdvanceEpoch(ctx)).To(MatchError(guarded.ErrFenced))
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		w.clock.Step(duration / 3)
		Expect(a.AdvanceEpoch(ctx)).To(Succeed())
		Expect(epochOf(w.lease(ctx))).To(Equal("2"))
		Expect(epochOf(w.record(ctx))).To(Equal("2"))
		Expect(w.lease(ctx).Spec.RenewTime.Time).To(BeTemporally("~", w.clock.Now(), time.Millisecond), "an advance must also renew the Lease")
		Expect(a.RenewLease(ctx)).To(Succeed())
		a.StopWrites()
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(epochOf(w.lease(ctx))).To(Equal("2"), "the epoch must not change when the same leader reconnects")
	}, NodeTimeout(timeout))

	It("keeps a record in the member, even if others also write to the Lease", func(ctx SpecContext) {
		lose := false
		a := w.manager("a", losing(&lose))
		Expect(a.AnnotateLease(ctx, noted("early"))).To(MatchError(guarded.ErrFenced))
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(a.AnnotateLease(ctx, noted("first"))).To(Succeed())
		version := w.lease(ctx).ResourceVersion
		Expect(a.AnnotateLease(ctx, noted("first"))).To(Succeed())
		Expect(w.lease(ctx).ResourceVersion).To(Equal(version), "an existing note must not be written again")
		w.clock.Step(time.Second)
		Expect(a.RenewLease(ctx)).To(Succeed())
		Expect(a.AdvanceEpoch(ctx)).To(Succeed())

		By("editing the Lease, and losing the response to a note")
		edited := w.lease(ctx)
		edited.Labels["team"] = "storage"
		Expect(api.Update(ctx, edited)).To(Succeed())
		Expect(a.AnnotateLease(ctx, noted("second"))).To(Succeed())
		Expect(a.RenewLease(ctx)).To(Succeed())
		lose = true
		Expect(a.AnnotateLease(ctx, noted("third"))).NotTo(Succeed())
		Expect(a.AnnotateLease(ctx, noted("fourth"))).To(Succeed())
		Expect(a.RenewLease(ctx)).To(Succeed())
		Expect(a.CheckMemberCurrent(ctx)).To(Succeed())
		Expect(a.ReleaseLease(ctx)).To(Succeed())
		Expect(w.manager("b").AcquireLease(ctx, "")).To(Succeed())
		Expect(w.lease(ctx).Annotations).To(And(HaveKey("first"), HaveKey("second"), HaveKey("third"), HaveKey("fourth"), Not(HaveKey("early"))))
		Expect(a.AnnotateLease(ctx, noted("late"))).To(MatchError(guarded.ErrFenced))
	}, NodeTimeout(timeout))

	It("records nothing once another manager has the fence", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		taken := w.lease(ctx)
		taken.Spec.HolderIdentity = ptr.To("b")
		Expect(api.Update(ctx, taken)).To(Succeed())
		Expect(a.AnnotateLease(ctx, noted("late"))).To(beProblem(v1alpha1.ReasonHostCloned))
		Expect(a.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))
		Expect(w.lease(ctx).Annotations).NotTo(HaveKey("late"))
	}, NodeTimeout(timeout))

	It("records nothing about a member that was restored, and leaves the evidence to the probe", func(ctx SpecContext) {
		a := w.restoredUnder(ctx)
		record := w.record(ctx)
		Expect(a.AnnotateLease(ctx, noted("late"))).To(beProblem(v1alpha1.ReasonMemberRestored))
		Expect(w.lease(ctx).Annotations).NotTo(HaveKey("late"))
		Expect(w.record(ctx).ResourceVersion).To(Equal(record.ResourceVersion))
		Expect(a.RenewLease(ctx)).To(beProblem(v1alpha1.ReasonMemberRestored))
		Expect(a.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))
		Expect(epochOf(w.record(ctx))).To(Equal("2"))
	}, NodeTimeout(timeout))

	DescribeTable("does not mistake a probe during a note for a restore or a clone (I6)", func(ctx SpecContext, probe func(context.Context, *fencing.Fence) error) {
		var a *fencing.Fence
		races := false
		a = w.manager("a", interceptor.Funcs{Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := api.Get(ctx, key, obj, opts...)
			if races { // the note has read the Lease, and the probe writes it now
				races = false
				w.clock.Step(time.Second)
				Expect(probe(ctx, a)).To(Succeed())
			}
			return err
		}})
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		edited := w.lease(ctx)
		edited.Labels["team"] = "storage"
		Expect(api.Update(ctx, edited)).To(Succeed())
		races = true
		Expect(apierrors.IsConflict(a.AnnotateLease(ctx, noted("first")))).To(BeTrue(), "the probe's write is later than the note's read")
		Expect(races).To(BeFalse(), "the note must read the Lease again")
		Expect(a.CheckFenceHeld()).To(Succeed())
		Expect(epochOf(w.record(ctx))).To(Equal(epochOf(w.lease(ctx))))
		Expect(a.AnnotateLease(ctx, noted("first"))).To(Succeed())
		Expect(a.RenewLease(ctx)).To(Succeed())
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(a.SuspensionProblem()).To(Succeed())
	},
		Entry("if it renews the Lease", func(ctx context.Context, a *fencing.Fence) error { return a.RenewLease(ctx) }),
		Entry("if it renews the Lease and takes the next epoch", func(ctx context.Context, a *fencing.Fence) error {
			if err := a.RenewLease(ctx); err != nil {
				return err
			}
			return a.AdvanceEpoch(ctx)
		}),
	)

	It("keeps the Lease that a note has written after a conflict", func(ctx SpecContext) {
		patches := 0
		a := w.manager("a", interceptor.Funcs{Patch: func(ctx context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			patches++
			return api.Patch(ctx, obj, patch, opts...)
		}})
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		edited := w.lease(ctx)
		edited.Labels["team"] = "storage"
		Expect(api.Update(ctx, edited)).To(Succeed())
		Expect(a.AnnotateLease(ctx, noted("first"))).To(Succeed())
		patches = 0
		Expect(a.RenewLease(ctx)).To(Succeed())
		Expect(patches).To(Equal(1), "the renewal must not conflict with the note")
	}, NodeTimeout(timeout))

	// Writes 1 and 2 to the host, and 1 to the member, belong to Acquire. Advance writes the intent
	// (3) and the fact (4) to the host, and the Lease (2) to the member.
	DescribeTable("continues after an interrupted advance (I6)", func(ctx SpecContext, crash [2]interceptor.Funcs, restart bool) {
		a := w.manager("a", crash[0], crash[1])
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(a.AdvanceEpoch(ctx)).NotTo(Succeed())
		next := w.manager("a")
		if restart {
			next = w.manager("b")
			Expect(next.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
			w.clock.Step(duration)
		}
		Expect(next.AcquireLease(ctx, "")).To(Succeed())
		Expect(next.SuspensionProblem()).To(Succeed())
		Expect(next.AdvanceEpoch(ctx)).To(Succeed())
		Expect(epochOf(w.lease(ctx))).To(Equal(epochOf(w.record(ctx))))
	},
		Entry("before the intent", [2]interceptor.Funcs{{}, cut(3, false)}, true),
		Entry("after the intent, with a lost response", [2]interceptor.Funcs{{}, cut(3, true)}, true),
		Entry("before the lease", [2]interceptor.Funcs{cut(2, false), {}}, true),
		Entry("after the lease, with a lost response", [2]interceptor.Funcs{cut(2, true), {}}, true),
		Entry("before the fact", [2]interceptor.Funcs{{}, cut(4, false)}, true),
		Entry("after the fact, with a lost response", [2]interceptor.Funcs{{}, cut(4, true)}, true),
		Entry("after the lease, and the same process reconnects", [2]interceptor.Funcs{cut(2, true), {}}, false),
		Entry("before the fact, and the same process reconnects", [2]interceptor.Funcs{{}, cut(4, false)}, false),
	)

	It("renews after an advance whose response was lost", func(ctx SpecContext) {
		lose := false
		a := w.manager("a", losing(&lose))
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		lose = true
		Expect(a.AdvanceEpoch(ctx)).To(beProblem(v1alpha1.ReasonUnreachable))
		Expect(a.RenewLease(ctx)).To(Succeed(), "the member has the epoch that this manager sent")
		Expect(a.AdvanceEpoch(ctx)).To(Succeed())
		Expect(epochOf(w.lease(ctx))).To(Equal("3"))
		Expect(epochOf(w.record(ctx))).To(Equal("3"))
	}, NodeTimeout(timeout))

	It("does not mistake writes to the host that failed during two advances for a restore", func(ctx SpecContext) {
		fails := map[int]bool{}
		patches := 0
		a := w.manager("a", interceptor.Funcs{}, interceptor.Funcs{Patch: func(ctx context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if patches++; fails[patches] {
				return errCut
			}
			return api.Patch(ctx, obj, patch, opts...)
		}})
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		fails[patches+2] = true // the record in the host that the member has the next epoch
		fails[patches+3] = true // the same record, which the next advance writes together with its own intent
		Expect(a.AdvanceEpoch(ctx)).To(MatchError(errCut))
		Expect(a.AdvanceEpoch(ctx)).To(MatchError(errCut))
		Expect(a.AdvanceEpoch(ctx)).To(Succeed())
		Expect(epochOf(w.record(ctx))).To(Equal("3"))
		Expect(epochOf(w.lease(ctx))).To(Equal("3"))
	}, NodeTimeout(timeout))

	It("suspends destruction when the member was restored within a leadership term (I2)", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		backup := w.lease(ctx)
		w.clock.Step(time.Second)
		Expect(a.AdvanceEpoch(ctx)).To(Succeed())
		restore(ctx, w.hostID, backup)
		Expect(a.RenewLease(ctx)).To(beProblem(v1alpha1.ReasonMemberRestored))
		Expect(a.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(a.SuspensionProblem().Reason).To(Equal(v1alpha1.ReasonMemberRestored))
	}, NodeTimeout(timeout))

	DescribeTable("suspends destruction when the member was restored within an epoch (I2)", func(ctx SpecContext, away bool) {
		a := w.restoredUnder(ctx)
		if away {
			a.StopWrites()
		} else {
			Expect(a.RenewLease(ctx)).To(beProblem(v1alpha1.ReasonMemberRestored))
		}
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(a.SuspensionProblem().Reason).To(Equal(v1alpha1.ReasonMemberRestored))

		By("the evidence, which only this process could detect, remains after the process ends")
		Expect(a.ReleaseLease(ctx)).To(Succeed())
		b := w.manager("b")
		Expect(b.AcquireLease(ctx, "")).To(Succeed())
		Expect(b.SuspensionProblem().Reason).To(Equal(v1alpha1.ReasonMemberRestored))
		confirmation := token(b.SuspensionProblem())
		Expect(b.AcquireLease(ctx, confirmation)).To(Succeed())
		Expect(b.CheckNotSuspended()).To(Succeed())
		Expect(b.RenewLease(ctx)).To(Succeed())
		Expect(b.AdvanceEpoch(ctx)).To(Succeed())
	},
		Entry("while the member was linked", false),
		Entry("while the member was away", true),
	)

	It("requires a restart of the manager if the host is restored while it runs (I2)", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		backup := w.record(ctx)
		Expect(a.AdvanceEpoch(ctx)).To(Succeed())
		restore(ctx, "fence-"+w.clusterID, backup)
		Expect(a.AdvanceEpoch(ctx)).To(MatchError(fencing.ErrHostRestored))
		a.StopWrites()
		Expect(a.AcquireLease(ctx, "")).To(MatchError(fencing.ErrHostRestored), "the caches of this process show a state that the host no longer has")

		By("the next process suspends destruction")
		b := w.manager("b")
		Expect(b.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
		w.clock.Step(duration)
		Expect(b.AcquireLease(ctx, "")).To(Succeed())
		Expect(b.SuspensionProblem().Reason).To(Equal(v1alpha1.ReasonHostRestored))
		Expect(b.AdvanceEpoch(ctx)).To(Succeed(), "an advance must keep the evidence")
		Expect(epochOf(w.record(ctx))).To(Equal("1"))
	}, NodeTimeout(timeout))

	Describe("a host that was restored to a state of the same epoch (I2)", func() {
		var at uint64
		var host *fencing.RevisionMonitor
		process := func(identity string) *fencing.Fence {
			host = fencing.NewRevisionMonitor(revisions{api, &at}, time.Hour)
			return fencing.NewFence(fencing.FenceOptions{
				Clock: w.clock, Member: api, Host: api, Namespace: namespace, Revision: host,
				HostID: w.hostID, ClusterID: w.clusterID, Identity: identity, Duration: duration,
			})
		}
		BeforeEach(func() { at = 1000 })

		It("is detected by the next manager through the revision that the member recorded", func(ctx SpecContext) {
			a := process("a")
			Expect(a.AcquireLease(ctx, "")).To(Succeed())
			at = 1050
			Expect(host.CheckRevision(ctx)).To(Succeed())
			w.clock.Step(time.Second)
			Expect(a.RenewLease(ctx)).To(Succeed())
			Expect(a.ReleaseLease(ctx)).To(Succeed())

			at = 1020
			b := process("b")
			Expect(b.AcquireLease(ctx, "")).To(Succeed())
			Expect(b.SuspensionProblem().Reason).To(Equal(v1alpha1.ReasonHostRestored))
			Expect(b.CheckNotSuspended()).To(MatchError(guarded.ErrSuspended))
			Expect(b.DetectedRestores().HostUnconfirmed).To(BeTrue())
			Expect(b.ReleaseLease(ctx)).To(Succeed())

			By("the evidence remains when the revision grows again")
			at = 5000
			c := process("c")
			Expect(c.AcquireLease(ctx, "")).To(Succeed())
			Expect(c.SuspensionProblem().Reason).To(Equal(v1alpha1.ReasonHostRestored))
			Expect(c.DetectedRestores().Host).To(Equal(b.DetectedRestores().Host))
			Expect(c.AcquireLease(ctx, token(c.SuspensionProblem()))).To(Succeed())
			Expect(c.CheckNotSuspended()).To(Succeed())
			Expect(c.DetectedRestores().HostUnconfirmed).To(BeFalse())
			Expect(c.DetectedRestores().Host).To(Equal(b.DetectedRestores().Host), "the time of the restore must remain after the confirmation")
			Expect(c.ReleaseLease(ctx)).To(Succeed())
			d := process("d")
			Expect(d.AcquireLease(ctx, "")).To(Succeed())
			Expect(d.SuspensionProblem()).To(Succeed())
			Expect(d.DetectedRestores().Host).To(Equal(b.DetectedRestores().Host))
		}, NodeTimeout(timeout))

		It("is detected after a clean stop, even if the restore increased the revisions", func(ctx SpecContext) {
			a := process("a")
			Expect(a.AcquireLease(ctx, "")).To(Succeed())
			backup := w.record(ctx)
			Expect(a.TakeFinalEpoch(ctx)).To(Succeed())
			Expect(a.ReleaseLease(ctx)).To(Succeed())
			Expect(w.lease(ctx).Spec.HolderIdentity).To(BeNil())
			after := w.record(ctx)

			restore(ctx, "fence-"+w.clusterID, backup)
			at = 1_000_001_000
			b := process("b")
			Expect(b.AcquireLease(ctx, "")).To(Succeed())
			Expect(b.SuspensionProblem().Reason).To(Equal(v1alpha1.ReasonHostRestored))
			Expect(b.ReleaseLease(ctx)).To(Succeed())

			By("a backup from after the stop has lost nothing")
			restore(ctx, "fence-"+w.clusterID, after)
			c := process("c")
			Expect(c.AcquireLease(ctx, "")).To(Succeed())
			Expect(c.SuspensionProblem()).To(Succeed())
		}, NodeTimeout(timeout))

		It("keeps its evidence if the manager stops after the restore", func(ctx SpecContext) {
			a := process("a")
			Expect(a.AcquireLease(ctx, "")).To(Succeed())
			epoch := epochOf(w.record(ctx))
			at = 900
			Expect(a.TakeFinalEpoch(ctx)).To(MatchError(guarded.ErrSuspended))
			Expect(epochOf(w.record(ctx))).To(Equal(epoch))
			Expect(epochOf(w.lease(ctx))).To(Equal(epoch))
		}, NodeTimeout(timeout))

		It("fences the running manager before a destructive step", func(ctx SpecContext) {
			a := process("a")
			Expect(a.AcquireLease(ctx, "")).To(Succeed())
			Expect(a.CheckHostCurrent(ctx)).To(Succeed())
			at = 900
			Expect(a.CheckNotSuspended()).To(Succeed(), "the manager has not detected the restore yet")
			Expect(a.CheckHostCurrent(ctx)).To(MatchError(guarded.ErrSuspended))
			Expect(a.CheckFenceHeld()).To(MatchError(guarded.ErrFenced))
			Expect(a.AcquireLease(ctx, "")).To(MatchError(fencing.ErrHostRestored))
		}, NodeTimeout(timeout))
	})

	It("records when the member was restored (I2)", func(ctx SpecContext) {
		restored(ctx, func(lease, _ *coordinationv1.Lease) { restore(ctx, w.hostID, lease) })
		w.clock.Step(time.Hour)
		a := w.manager("after")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		at := a.DetectedRestores().Member
		Expect(at).To(BeTemporally(">", w.clock.Now()), "the time must be rounded up, because the member's Date header has no fractions of a second")
		Expect(at).To(BeTemporally("~", w.clock.Now(), 3*time.Second))
		Expect(a.DetectedRestores()).To(Equal(fencing.RestoreTimes{Member: at}))

		w.clock.Step(time.Hour)
		Expect(a.AcquireLease(ctx, token(a.SuspensionProblem()))).To(Succeed())
		Expect(a.DetectedRestores().Member).To(Equal(at), "the time must be that of the detection, not of the confirmation")
		Expect(a.ReleaseLease(ctx)).To(Succeed())

		By("restoring the host, so that the host's record is lost but not the member's")
		restore(ctx, "fence-"+w.clusterID, nil)
		b := w.manager("next")
		Expect(b.AcquireLease(ctx, "")).To(Succeed())
		Expect(b.DetectedRestores().Member).To(Equal(at))
		Expect(b.DetectedRestores().HostUnconfirmed).To(BeTrue())
		Expect(b.AcquireLease(ctx, token(b.SuspensionProblem()))).To(Succeed())
		Expect(w.record(ctx).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRestored, at.Format(time.RFC3339)))
	}, NodeTimeout(timeout))

	It("does not mistake a clock that was set back for a restore", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		w.clock.SetTime(w.clock.Now().Add(-time.Hour))
		Expect(a.RenewLease(ctx)).To(Succeed())
		a.StopWrites()
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		Expect(a.SuspensionProblem()).To(Succeed())
	}, NodeTimeout(timeout))

	It("waits for the duration of the holder's Lease", func(ctx SpecContext) {
		a := w.manager("a")
		Expect(a.AcquireLease(ctx, "")).To(Succeed())
		lease := w.lease(ctx)
		longer := lease.DeepCopy()
		longer.Spec.LeaseDurationSeconds = ptr.To[int32](60)
		Expect(api.Patch(ctx, longer, client.MergeFrom(lease))).To(Succeed())
		b := w.manager("b")
		Expect(b.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
		w.clock.Step(59 * time.Second)
		Expect(b.AcquireLease(ctx, "")).To(beProblem(v1alpha1.ReasonWaitingForFence))
		w.clock.Step(time.Second)
		Expect(b.AcquireLease(ctx, "")).To(Succeed())
	}, NodeTimeout(timeout))
})
