package proxy_test

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"

	"github.com/xylem-io/xylem/test/fault/proxy"
)

const (
	jsonType     = runtime.ContentTypeJSON
	protobufType = runtime.ContentTypeProtobuf
	// brief is how long a test waits for something that must not happen.
	brief = 300 * time.Millisecond
)

// beReset matches the error that a client receives after a reset. The kernel reports a reset only
// once. If it reports the reset to a writer, readers receive EOF.
var beReset = Or(MatchError(syscall.ECONNRESET), MatchError(io.ErrUnexpectedEOF))

var _ = Describe("the log", func() {
	DescribeTable("contains every write, with the object's name", func(ctx SpecContext, contentType string) {
		p := start()
		s := tell(ctx, p, contentType)
		maps := s.CoreV1().ConfigMaps(s.namespace)
		Expect(s.create(ctx, "a")).To(Succeed())
		m, err := maps.Get(ctx, "a", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		m.Data = map[string]string{"k": "v"}
		_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"k":"w"}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(maps.Delete(ctx, "b", metav1.DeleteOptions{})).NotTo(Succeed())
		Expect(maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
		_, err = s.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/", Verb: "get"}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		type entry struct {
			Seq       int
			Key, Name string
			Status    int
		}
		var got []entry
		for _, r := range p.Log() {
			Expect(r.Namespace).To(Equal(s.namespace))
			Expect(r.UserAgent).NotTo(BeEmpty())
			got = append(got, entry{r.Seq, r.Key(), r.Name, r.Status})
		}
		Expect(got).To(Equal([]entry{
			{1, "host create configmaps", "a", 201},
			{2, "host update configmaps", "a", 200},
			{3, "host patch configmaps", "a", 200},
			{4, "host delete configmaps", "b", 404},
			{5, "host deletecollection configmaps", "", 200},
		}))
		p.Reset()
		Expect(p.Log()).To(BeEmpty())
	}, Entry("in JSON", jsonType), Entry("in protobuf", protobufType))

	It("contains writes to Leases, which reach the plan only on request", func(ctx SpecContext) {
		lease := func(ctx context.Context, s story) error {
			_, err := s.CoordinationV1().Leases(s.namespace).Create(ctx,
				&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}, metav1.CreateOptions{})
			return err
		}
		p := start()
		p.Arm(func(proxy.Request) proxy.Fault { return proxy.Conflict })
		Expect(lease(ctx, tell(ctx, p, jsonType))).To(Succeed())
		Expect(p.Log()).To(HaveLen(1))

		p = start(func(o *proxy.Options) { o.Leases = true })
		p.Arm(func(proxy.Request) proxy.Fault { return proxy.Conflict })
		Expect(lease(ctx, tell(ctx, p, jsonType))).NotTo(Succeed())
	})

	It("contains the writes of all proxies that share it", func(ctx SpecContext) {
		log := proxy.NewLog()
		share := func(name string) *proxy.Proxy {
			return start(func(o *proxy.Options) { o.Name, o.Log = name, log })
		}
		one, two := share("one"), share("two")
		Expect(tell(ctx, one, jsonType).create(ctx, "a")).To(Succeed())
		Expect(tell(ctx, two, jsonType).create(ctx, "a")).To(Succeed())
		Expect(tell(ctx, one, jsonType).create(ctx, "a")).To(Succeed())
		var keys []string
		for i, r := range two.Log() {
			Expect(r.Seq).To(Equal(i + 1))
			keys = append(keys, r.Cluster)
		}
		Expect(keys).To(Equal([]string{"one", "two", "one"}))
	})
})

var _ = Describe("a write", func() {
	DescribeTable("is rejected", func(ctx SpecContext, fault proxy.Fault, is func(error) bool) {
		for _, contentType := range []string{jsonType, protobufType} {
			p := start()
			p.Arm(once(fault))
			s := tell(ctx, p, contentType)
			err := s.create(ctx, "a")
			Expect(is(err)).To(BeTrue(), "%s: %v", contentType, err)
			Expect(s.there(ctx, "a")).To(BeFalse())
			Expect(s.create(ctx, "a")).To(Succeed())
			Expect(p.Log()[0].Fault).To(Equal(fault))
		}
	},
		Entry("with a conflict", proxy.Conflict, apierrors.IsConflict),
		Entry("with an internal error", proxy.InternalError, apierrors.IsInternalError),
		Entry("because the server is not available", proxy.Unavailable, apierrors.IsServiceUnavailable),
	)

	It("fails with 429, and the client retries it after the second that the response specifies", func(ctx SpecContext) {
		p := start()
		p.Arm(once(proxy.TooManyRequests))
		Expect(tell(ctx, p, protobufType).create(ctx, "a")).To(Succeed())
		log := p.Log()
		Expect(log).To(HaveLen(2))
		Expect(log[0].Status).To(Equal(429))
		Expect(log[1].At.Sub(log[0].At)).To(BeNumerically(">=", time.Second))
	})

	It("stalls until the proxy is disarmed", func(ctx SpecContext) {
		p := start()
		p.Arm(once(proxy.Stall))
		s := tell(ctx, p, protobufType)
		result := make(chan error, 1)
		go func() { result <- s.create(ctx, "a") }()
		Eventually(p.Log).Should(HaveLen(1))
		Consistently(result, brief).ShouldNot(Receive())
		p.Disarm()
		var err error
		Eventually(result).Should(Receive(&err))
		Expect(apierrors.IsTimeout(err)).To(BeTrue(), "%v", err)
		Expect(s.there(ctx, "a")).To(BeFalse())
	})

	DescribeTable("loses its connection", func(ctx SpecContext, fault proxy.Fault, forwarded bool) {
		p := start()
		p.Arm(once(fault))
		s := tell(ctx, p, jsonType)
		Expect(s.create(ctx, "a")).To(beReset)
		Expect(s.there(ctx, "a")).To(Equal(forwarded))
		Expect(s.create(ctx, "b")).To(Succeed())
	}, Entry("before", proxy.Cut, false), Entry("after", proxy.CutAfter, true))

	DescribeTable("can kill the client before or after it is forwarded", func(ctx SpecContext, fault proxy.Fault, forwarded bool) {
		p := start()
		s := tell(ctx, p, jsonType)
		seen := make(chan bool, 2)
		p.Arm(once(fault))
		p.OnKill(func() { seen <- s.there(ctx, "a"); p.Disarm() })
		Expect(s.create(ctx, "a")).To(beReset)
		Expect(seen).To(Receive(Equal(forwarded)), "state when the client was killed")
		Expect(seen).NotTo(Receive(), "the client was killed twice")
		Expect(s.there(ctx, "a")).To(Equal(forwarded))
		Expect(p.Log()).To(HaveLen(1))
		Expect(s.create(ctx, "b")).To(Succeed())
	}, Entry("before", proxy.KillBefore, false), Entry("after", proxy.KillAfter, true))

	It("falls into a black hole, with all requests on its connection", func(ctx SpecContext) {
		p := start()
		s := tell(ctx, p, jsonType)
		w, err := s.CoreV1().ConfigMaps(s.namespace).Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		defer w.Stop()

		p.Arm(func(proxy.Request) proxy.Fault { return proxy.BlackHole })
		result := make(chan error, 1)
		go func() { result <- s.create(ctx, "a") }()
		Eventually(p.Log).Should(HaveLen(1))
		// A black hole drops pings, too, so clients can detect it.
		Eventually(w.ResultChan()).Should(BeClosed())
		var dead error
		Eventually(result).Should(Receive(&dead))
		Expect(dead).To(HaveOccurred())

		p.Disarm()
		Expect(s.create(ctx, "b")).To(Succeed())
		Expect(s.there(ctx, "a")).To(BeFalse())
		Expect(p.Log()).To(HaveLen(2))
	})
})

var _ = Describe("the whole proxy", func() {
	It("can be disconnected, and returns at the same address", func(ctx SpecContext) {
		p := start()
		s := tell(ctx, p, jsonType)
		Expect(s.create(ctx, "a")).To(Succeed())
		Expect(p.SetMode(proxy.Cut)).To(Succeed())
		// The first request may still observe the reset.
		Eventually(s.create).WithContext(ctx).WithArguments("b").Should(MatchError(syscall.ECONNREFUSED))
		Expect(p.SetMode(proxy.Pass)).To(Succeed())
		Expect(s.create(ctx, "b")).To(Succeed())
		Expect(p.SetMode(proxy.Conflict)).NotTo(Succeed())
	})

	It("can become a black hole, and continues where it stopped", func(ctx SpecContext) {
		p := start()
		s := tell(ctx, p, jsonType)
		Expect(s.create(ctx, "a")).To(Succeed())
		Expect(p.SetMode(proxy.BlackHole)).To(Succeed())
		Expect(s.create(ctx, "b")).NotTo(Succeed(), "create through a black hole")
		short, cancel := context.WithTimeout(ctx, brief)
		defer cancel()
		err := connect(p, jsonType).CoreV1().RESTClient().Get().AbsPath("/version").Do(short).Error()
		Expect(errors.Is(err, context.DeadlineExceeded)).To(BeTrue(), "%v", err)
		Expect(p.SetMode(proxy.Pass)).To(Succeed())
		Expect(s.create(ctx, "c")).To(Succeed())
	})
})

var _ = Describe("watches", func() {
	It("end normally on request", func(ctx SpecContext) {
		p := start()
		s := tell(ctx, p, protobufType)
		s.put(ctx, "a")
		w, err := s.CoreV1().ConfigMaps(s.namespace).Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		defer w.Stop()
		Eventually(w.ResultChan()).Should(Receive(HaveField("Type", watch.Added)))
		p.EndWatches()
		Eventually(w.ResultChan()).Should(BeClosed())
		Expect(s.names(ctx)).To(ContainElement("a"), "the connection still works")
	})

	It("fail with 410 Expired as often as requested", func(ctx SpecContext) {
		p := start()
		s := tell(ctx, p, protobufType)
		p.GoneWatches(1)
		_, err := s.CoreV1().ConfigMaps(s.namespace).Watch(ctx, metav1.ListOptions{})
		Expect(apierrors.IsResourceExpired(err)).To(BeTrue(), "%v", err)
		w, err := s.CoreV1().ConfigMaps(s.namespace).Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		w.Stop()
	})
})

var _ = Describe("clients", func() {
	It("receive an earlier state from lists that accept any version", func(ctx SpecContext) {
		p := start()
		s := tell(ctx, p, protobufType)
		_, err := p.Mark(ctx)
		Expect(err).To(MatchError(ContainSubstring("no client has listed")))
		s.put(ctx, "old")
		Expect(s.names(ctx)).To(ContainElement("old"))
		revision, err := p.Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.put(ctx, "new")
		p.StaleLists(revision)

		factory := informers.NewSharedInformerFactoryWithOptions(s, 0, informers.WithNamespace(s.namespace))
		lister := factory.Core().V1().ConfigMaps().Lister().ConfigMaps(s.namespace)
		defer factory.Shutdown()
		informing, cancel := context.WithCancel(ctx)
		defer cancel()
		factory.Start(informing.Done())
		Eventually(factory.Core().V1().ConfigMaps().Informer().HasSynced).Should(BeTrue())
		cached := func(name string) func() error {
			return func() error { _, err := lister.Get(name); return err }
		}
		Expect(cached("old")()).To(Succeed())
		Expect(cached("new")()).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
		Expect(s.names(ctx)).To(ContainElements("old", "new"), "a quorum read")

		// Barrier: once another watch has received the event, the informer would have received it, too.
		s.put(ctx, "newest")
		w, err := s.CoreV1().ConfigMaps(s.namespace).Watch(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, "newest").String(),
		})
		Expect(err).NotTo(HaveOccurred())
		defer w.Stop()
		Eventually(w.ResultChan()).Should(Receive(HaveField("Type", watch.Added)))
		Consistently(cached("newest"), brief).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))

		p.FreshLists()
		Eventually(cached("new")).Should(Succeed())
		Eventually(cached("newest")).Should(Succeed())
	})

	It("can lag behind: watches of one resource hold back new events while others deliver", func(ctx SpecContext) {
		p := start()
		s := tell(ctx, p, jsonType)
		maps, err := s.CoreV1().ConfigMaps(s.namespace).Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		defer maps.Stop()
		secrets, err := s.CoreV1().Secrets(s.namespace).Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		defer secrets.Stop()
		named := func(name string) OmegaMatcher { return Receive(HaveField("Object.ObjectMeta.Name", name)) }
		s.put(ctx, "before")
		Eventually(maps.ResultChan()).Should(named("before"))

		p.LagWatches("configmaps")
		s.put(ctx, "late")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late"}}
		_, err = s.CoreV1().Secrets(s.namespace).Create(ctx, secret, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(secrets.ResultChan()).Should(named("late"))
		Consistently(maps.ResultChan(), brief).ShouldNot(named("late"))

		p.FreshLists()
		Eventually(maps.ResultChan()).Should(named("late"))
	})
})
