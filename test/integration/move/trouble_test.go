package move_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/move/objects"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubelet"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// untouched is part of the message of every failed run.
const untouched = `has written nothing to the disk in member "cluster38"`

// Kinds of commands.
const (
	sends    = "send"
	receives = "receive"
	sums     = "sum"
	measures = "measure"
)

func kindOf(c kubelet.Command) string {
	script := strings.Join(c.Args, " ")
	switch {
	case strings.Contains(script, "sha256sum"):
		return sums
	case strings.Contains(script, "--extract"), strings.Contains(script, "dd of="):
		return receives
	case strings.Contains(script, "--create"), strings.Contains(script, "dd if="):
		return sends
	}
	return measures
}

// once returns a hook that calls do at the n-th command of a kind.
func once(what string, n int, do func(kubelet.Command) error) func(kubelet.Command) error {
	var mu sync.Mutex
	seen := 0
	return func(c kubelet.Command) error {
		mu.Lock()
		if kindOf(c) == what {
			seen++
		}
		now := kindOf(c) == what && seen == n
		mu.Unlock()
		if !now {
			return nil
		}
		return do(c)
	}
}

// vanish deletes objects of the second member without waiting for their finalizers.
func vanish(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	m := x.Member(two)
	for _, obj := range objects {
		Expect(m.API.Delete(ctx, obj)).To(Succeed())
		Expect(client.IgnoreNotFound(m.API.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))).To(Succeed())
	}
}

var _ = Describe("A move", func() {
	refused := func(r result, parts ...string) {
		GinkgoHelper()
		Expect(r.code).NotTo(BeZero(), r.out)
		for _, part := range parts {
			Expect(r.err).To(ContainSubstring(part))
		}
	}

	It("is rejected before it changes anything", func(ctx SpecContext) {
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "hello")
		files := look(ctx, s.disk(ctx, s.volume))

		refused(s.move(ctx), "--to is missing")
		refused(s.move(ctx, "--to", "cluster93"), `no member "cluster93"`, "Did you mean")
		refused(s.move(ctx, "--to", one), "already")
		refused(s.move(ctx, "--undo"), "nothing to undo")
		refused(s.move(ctx, "--delete-source"), "left a disk")
		refused(s.move(ctx, "--undo", "--delete-source"), "cannot be used together")

		By("creating a Pod that uses the claim but is not bound to a node")
		pod := harness.Pod(s.namespace, "user", "data")
		pod.Spec.NodeSelector = map[string]string{"no": "such-node"}
		Expect(x.Host.Create(ctx, pod)).To(Succeed())
		refused(s.move(ctx, "--to", two), `"user"`, "Scale down the owner")
		s.deletePod(ctx, "user")

		By("cutting off the other member")
		Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Cut)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		})
		Eventually(ctx, func() string { return s.move(ctx, "--to", two, "--dry-run").err }).Should(ContainSubstring(`member "cluster39" is not ready`))
		Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Pass)).To(Succeed())
		Expect(x.AwaitReady(ctx, two)).To(Succeed())
		s.unmoved(ctx, files)
	}, SpecTimeout(storyTime))

	disk := func(pv *corev1.PersistentVolume) map[string]any {
		return map[string]any{"name": pv.Name, "uid": pv.UID, "policy": "Delete"}
	}
	// forge writes a record as a tenant can.
	forge := func(ctx context.Context, s *story, namespace, phase string, fields map[string]any) {
		GinkgoHelper()
		place := func(name string) objects.Place {
			cr, err := suite.Read[v1alpha1.ClusterRegistration](ctx, x.Host, "", name)
			Expect(err).NotTo(HaveOccurred())
			return objects.PlaceOf(cr)
		}
		claim := harness.Claim(namespace, "data", class)
		claim.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
		forged := map[string]any{
			"id": "forged", "run": "x", "phase": phase, "claim": claim, "claimUID": "gone", "from": place(one), "to": place(two), "copy": "data-move-forged",
		}
		maps.Copy(forged, fields)
		content, err := json.Marshal(forged)
		Expect(err).NotTo(HaveOccurred())
		book := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "xylem-move-data", Labels: map[string]string{v1alpha1.LabelMove: fmt.Sprint(forged["id"])}},
			Data:       map[string]string{"move": string(content)},
		}
		Expect(client.IgnoreNotFound(x.Host.API.Delete(ctx, book.DeepCopy()))).To(Succeed())
		Expect(x.Host.Create(ctx, book)).To(Succeed())
	}

	It("does not follow a record that a tenant has forged", func(ctx SpecContext) {
		victim, s := begin(ctx), begin(ctx)
		write(victim.disk(ctx, victim.volume), "text", "secret")
		secret, err := suite.Read[corev1.PersistentVolume](ctx, x.Host, "", victim.volume)
		Expect(err).NotTo(HaveOccurred())
		Expect(x.Host.API.Patch(ctx, secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)))).To(Succeed())
		Expect(x.Host.API.Delete(ctx, victim.claim(ctx))).To(Succeed())
		released := suite.Until[corev1.PersistentVolume](ctx, x.Host, "", victim.volume, HaveField("Status.Phase", corev1.VolumeReleased))

		own, err := suite.Read[corev1.PersistentVolume](ctx, x.Host, "", s.volume)
		Expect(err).NotTo(HaveOccurred())

		By("naming a policy that the volume did not have")
		policy := func(policy corev1.PersistentVolumeReclaimPolicy) {
			GinkgoHelper()
			Expect(x.Host.API.Patch(ctx, own.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy)))).To(Succeed())
		}
		policy(corev1.PersistentVolumeReclaimRetain)
		forge(ctx, s, s.namespace, "Copying", map[string]any{"old": disk(own)})
		Expect(s.move(ctx, "--undo").code).To(BeZero())
		Expect(suite.Read[corev1.PersistentVolume](ctx, x.Host, "", own.Name)).To(HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain))
		policy(corev1.PersistentVolumeReclaimDelete)

		By("naming another namespace's volume as the copy")
		Expect(x.Host.API.Delete(ctx, s.claim(ctx))).To(Succeed())
		suite.Gone[corev1.PersistentVolumeClaim](ctx, x.Host, s.namespace, "data")
		others := map[string]any{"old": disk(own), "new": disk(released), "used": true}
		for _, phase := range []string{"Rebinding", "Sealed", "Swapping", "Copying"} {
			forge(ctx, s, s.namespace, phase, others)
			Expect(s.move(ctx, "--to", two).code).NotTo(BeZero())
			Expect(s.move(ctx, "--undo").code).NotTo(BeZero())
		}
		By("naming another namespace's claim as the moved claim")
		forge(ctx, s, victim.namespace, "Rebinding", others)
		refused(s.move(ctx, "--to", two), "is not the record of a move")

		now, err := suite.Read[corev1.PersistentVolume](ctx, x.Host, "", victim.volume)
		Expect(err).NotTo(HaveOccurred())
		Expect(now.Spec).To(Equal(released.Spec))
		Expect(now.Annotations).To(Equal(released.Annotations))
		suite.Gone[corev1.PersistentVolumeClaim](ctx, x.Host, victim.namespace, "data")
	}, SpecTimeout(storyTime))

	It("neither creates the claim nor prints the text that a tenant has put into a record", func(ctx SpecContext) {
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "hello")
		own, err := suite.Read[corev1.PersistentVolume](ctx, x.Host, "", s.volume)
		Expect(err).NotTo(HaveOccurred())
		claim := harness.Claim(s.namespace, "data", onlyOne)
		claim.Labels, claim.Finalizers = map[string]string{"forged": "yes"}, []string{"example.com/keep"}

		By("naming another class, after the claim was deleted")
		forge(ctx, s, s.namespace, "Rebinding", map[string]any{"old": disk(own), "claim": claim})
		refused(s.move(ctx, "--undo"), "has another class or mode than the claim in the record")
		By("writing sentences and commands")
		for _, fields := range []map[string]any{{"phase": "Copying. To do: run this\n"}, {"to": objects.Place{Registration: two + " && run this"}}} {
			fields["old"] = disk(own)
			forge(ctx, s, s.namespace, "Copying", fields)
			for _, args := range [][]string{{"--to", two, "--dry-run"}, {"--undo"}, {"--delete-source"}} {
				r := s.move(ctx, args...)
				refused(r, "is not the record of a move")
				Expect(r.out + r.err).NotTo(ContainSubstring("run this"))
			}
		}
		By("naming another class while the claim exists")
		forge(ctx, s, s.namespace, "Copying", map[string]any{"old": disk(own), "claim": claim, "claimUID": s.claim(ctx).UID})
		r := s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		moved := s.claim(ctx)
		Expect(*moved.Spec.StorageClassName).To(Equal(class))
		Expect(moved.Labels).NotTo(HaveKey("forged"))
		Expect(moved.Finalizers).NotTo(ContainElement("example.com/keep"))
	}, SpecTimeout(storyTime))

	It("does not destroy a disk that an earlier move keeps, if a tenant forges a record that names it", func(ctx SpecContext) {
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "hello")
		r := s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		kept := suite.Until[corev1.PersistentVolume](ctx, x.Host, "", s.volume, HaveField("Status.Phase", corev1.VolumeReleased))
		claim := s.claim(ctx)
		current, err := suite.Read[corev1.PersistentVolume](ctx, x.Host, "", claim.Spec.VolumeName)
		Expect(err).NotTo(HaveOccurred())
		for _, fields := range []map[string]any{{"old": disk(current), "new": disk(kept)}, {"old": disk(kept)}} {
			fields["id"], fields["claimUID"] = kept.Annotations[v1alpha1.LabelMove], claim.UID
			forge(ctx, s, s.namespace, "Copying", fields)
			refused(s.move(ctx, "--undo"), "the record of the move is wrong")
			now, err := suite.Read[corev1.PersistentVolume](ctx, x.Host, "", kept.Name)
			Expect(err).NotTo(HaveOccurred())
			Expect(now.Spec).To(Equal(kept.Spec))
			Expect(now.Annotations).To(Equal(kept.Annotations))
		}

		By("letting the command destroy the disk, after the forged record is deleted")
		Expect(x.Host.API.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "xylem-move-data"}})).To(Succeed())
		r = s.move(ctx, "--delete-source")
		Expect(r.code).To(BeZero(), r.err)
		suite.Gone[corev1.PersistentVolume](ctx, x.Host, "", kept.Name)
	}, SpecTimeout(storyTime))

	It("does not forget the disk of a second claim that the user deletes during the last comparison", func(ctx SpecContext) {
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "hello")
		files := look(ctx, s.disk(ctx, s.volume))
		var lost string
		kubelets[one].Before(once(sums, 2, func(kubelet.Command) error {
			var copies corev1.PersistentVolumeClaimList
			Expect(x.Host.API.List(ctx, &copies, client.InNamespace(s.namespace), client.HasLabels{v1alpha1.LabelMove})).To(Succeed())
			Expect(copies.Items).To(HaveLen(1))
			lost = copies.Items[0].Spec.VolumeName
			Expect(x.Host.API.Delete(ctx, &copies.Items[0])).To(Succeed())
			return errors.New("input/output error")
		}))
		refused(s.move(ctx, "--to", two), "input/output error")
		r := s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		s.moved(ctx, files)
		suite.Gone[corev1.PersistentVolume](ctx, x.Host, "", lost)
	}, SpecTimeout(storyTime))

	It("is rejected if the member lacks the class", func(ctx SpecContext) {
		s := begin(ctx, func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr.To(onlyOne) })
		files := look(ctx, s.disk(ctx, s.volume))
		refused(s.move(ctx, "--to", two), `member "cluster39"`, onlyOne, "Create the class in the member")
		s.unmoved(ctx, files)
	}, SpecTimeout(storyTime))

	It("stops if a Pod starts to use the claim, and does not lose the Pod's data", func(ctx SpecContext) {
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "hello")
		kubelets[one].Before(once(sums, 1, func(kubelet.Command) error { // after the copy
			s.pod(ctx, "writer", "data", nodeOne)
			s.running(ctx, "writer")
			return nil
		}))
		refused(s.move(ctx, "--to", two), `"writer"`, untouched)
		write(s.disk(ctx, s.volume), "text", "changed by the Pod")
		By("undoing the move while the Pod runs, and moving again")
		r := s.move(ctx, "--undo")
		Expect(r.code).To(BeZero(), r.err)
		s.running(ctx, "writer")
		refused(s.move(ctx, "--to", two), `"writer"`)
		s.deletePod(ctx, "writer")
		files := look(ctx, s.disk(ctx, s.volume))
		r = s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		s.moved(ctx, files)
	}, SpecTimeout(storyTime))

	It("returns to the old disk if somebody writes to it just before the last comparison", func(ctx SpecContext) {
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "hello")
		By("creating a Pod that bypasses the scheduler while the claim is being deleted; it must never start")
		kubelets[one].Before(once(sums, 2, func(c kubelet.Command) error {
			claim, err := suite.Read[corev1.PersistentVolumeClaim](ctx, x.Host, s.namespace, "data")
			Expect(err).NotTo(HaveOccurred())
			Expect(claim.DeletionTimestamp).NotTo(BeNil())
			write(c.Disk, "text", "late")
			pod := harness.Pod(s.namespace, "bypass", "data")
			pod.Spec.NodeName = nodeOne
			Expect(x.Host.Create(ctx, pod)).To(Succeed())
			suite.Until[corev1.Pod](ctx, x.Host, s.namespace, "bypass", HaveField("Status.Conditions", ContainElement(HaveField("Message", ContainSubstring("is being deleted")))))
			return nil
		}))
		refused(s.move(ctx, "--to", two), `"bypass"`)
		suite.Gone[corev1.Pod](ctx, x.Member(one), s.namespace, "bypass")
		s.deletePod(ctx, "bypass")
		refused(s.move(ctx, "--to", two), "after it was compared", "is bound to its old disk again")
		files := look(ctx, s.disk(ctx, s.volume))
		Expect(s.claim(ctx).Spec.VolumeName).To(Equal(s.volume))
		r := s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		s.moved(ctx, files)
	}, SpecTimeout(storyTime))

	DescribeTable("reports a failure, leaves the old disk unchanged, and can be run again or undone", func(ctx SpecContext, member, what string, n int, do func(kubelet.Command) error, message string) {
		s := begin(ctx)
		fill(s.disk(ctx, s.volume))
		files := look(ctx, s.disk(ctx, s.volume))
		kubelets[member].Before(once(what, n, do))
		refused(s.move(ctx, "--to", two), message, untouched)
		s.safe(ctx, files)
		r := s.move(ctx, "--undo")
		Expect(r.code).To(BeZero(), r.err)
		s.unmoved(ctx, files)
		s.deletePod(ctx, "after")

		kubelets[member].Before(once(what, n, do))
		refused(s.move(ctx, "--to", two), message)
		r = s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		s.moved(ctx, files)
	},
		Entry("a stream that cannot be written", SpecTimeout(storyTime), two, receives, 1, func(kubelet.Command) error { return errors.New("no space left on device") }, "no space left on device"),
		Entry("a disk that cannot be read", SpecTimeout(storyTime), one, sends, 1, func(kubelet.Command) error { return errors.New("input/output error") }, "input/output error"),
		Entry("a disk whose checksum cannot be calculated", SpecTimeout(storyTime), one, sums, 1, func(kubelet.Command) error { return errors.New("input/output error") }, "input/output error"),
		Entry("a connection that breaks while the copy is written", SpecTimeout(storyTime), two, receives, 1, func(kubelet.Command) error { return kubelet.ErrBroken }, "the connection was lost"),
		Entry("a connection that breaks while the disk is read", SpecTimeout(storyTime), one, sends, 1, func(kubelet.Command) error { return kubelet.ErrBroken }, "the connection was lost"),
		Entry("a connection that breaks while a checksum is calculated", SpecTimeout(storyTime), one, sums, 1, func(kubelet.Command) error { return kubelet.ErrBroken }, "the connection was lost"),
		Entry("a copy that differs", SpecTimeout(storyTime), two, sums, 1, func(c kubelet.Command) error {
			write(c.Disk, "more", "a member's admin was here")
			return nil
		}, "the disks differ"),
		Entry("a Pod that somebody deletes", SpecTimeout(storyTime), two, receives, 1, func(c kubelet.Command) error {
			return x.Host.API.Delete(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Pod.Namespace, Name: c.Pod.Name}})
		}, "Pod"),
	)

	// deletedMeanwhile begins a move during which the user deletes the claim.
	deletedMeanwhile := func(ctx context.Context) *story {
		GinkgoHelper()
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "hello")
		kubelets[two].Before(once(receives, 1, func(kubelet.Command) error {
			if err := x.Host.API.Delete(ctx, s.claim(ctx)); err != nil {
				return err
			}
			return errors.New("no space left on device")
		}))
		refused(s.move(ctx, "--to", two), "no space left on device")
		return s
	}

	It("can be undone if the user deletes the claim, as long as one of the move's Pods keeps it", func(ctx SpecContext) {
		s := deletedMeanwhile(ctx)
		files := look(ctx, s.disk(ctx, s.volume))
		r := s.move(ctx, "--undo")
		Expect(r.code).To(BeZero(), r.err)
		s.unmoved(ctx, files)
	}, SpecTimeout(storyTime))

	It("does not let the user destroy the old disk if the member's admin deleted the copy after the move", func(ctx SpecContext) {
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "hello")
		files := look(ctx, s.disk(ctx, s.volume))
		r := s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		vanish(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.claim(ctx).Spec.VolumeName}})
		suite.Until[corev1.PersistentVolumeClaim](ctx, x.Host, s.namespace, "data", HaveField("Status.Conditions", ContainElement(HaveField("Reason", "VolumeLost"))))
		refused(s.move(ctx, "--delete-source"), "may be lost", "destroys none of them")
		r = s.move(ctx, "--undo")
		Expect(r.code).To(BeZero(), r.err)
		Expect(s.claim(ctx).Spec.VolumeName).To(Equal(s.volume))
		Expect(look(ctx, s.disk(ctx, s.volume))).To(Equal(files))
	}, SpecTimeout(storyTime))

	It("is discarded by an undo if the user deletes the claim", func(ctx SpecContext) {
		s := deletedMeanwhile(ctx)
		Expect(x.Host.API.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace))).To(Succeed())
		suite.Gone[corev1.PersistentVolumeClaim](ctx, x.Host, s.namespace, "data")
		suite.Gone[corev1.PersistentVolume](ctx, x.Host, "", s.volume)
		refused(s.move(ctx, "--to", two), "Run this command with --undo to discard the move")
		r := s.move(ctx, "--undo")
		Expect(r.code).To(BeZero(), r.err)
		Expect(r.out).To(And(ContainSubstring("was deleted in the host"), ContainSubstring("Discarded")))
		Expect(s.recorded(ctx)).To(BeFalse())
		refused(s.move(ctx, "--to", two), `no claim "data"`)
		// The PV controller may not have released the copy's volume yet.
		Eventually(ctx, func(ctx context.Context) int { return s.move(ctx, "--delete-source").code }).Should(BeZero())
		var left corev1.PersistentVolumeClaimList
		Expect(x.Host.API.List(ctx, &left, client.InNamespace(s.namespace))).To(Succeed())
		Expect(left.Items).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("replaces a copy that the member's admin deleted", func(ctx SpecContext) {
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "hello")
		files := look(ctx, s.disk(ctx, s.volume))
		m := x.Member(two)
		kubelets[two].Before(once(sums, 1, func(c kubelet.Command) error {
			name := c.Pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName
			leaf, err := suite.Read[corev1.PersistentVolumeClaim](ctx, m, s.namespace, name)
			Expect(err).NotTo(HaveOccurred())
			vanish(ctx, leaf, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: leaf.Spec.VolumeName}})
			suite.Until[corev1.PersistentVolumeClaim](ctx, x.Host, s.namespace, name, HaveField("Status.Conditions", ContainElement(HaveField("Reason", "VolumeLost"))))
			return os.RemoveAll(c.Disk)
		}))
		refused(s.move(ctx, "--to", two), untouched)
		r := s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		Expect(r.out).To(ContainSubstring("The copy was lost"))
		s.moved(ctx, files)
	}, SpecTimeout(storyTime))

	It("reports a member that becomes unreachable during the copy, and continues when the member is reachable again", func(ctx SpecContext) {
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "hello")
		files := look(ctx, s.disk(ctx, s.volume))
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		})
		kubelets[two].Before(once(receives, 1, func(kubelet.Command) error { return x.Fleet.Member(two).Proxy().SetMode(controlplane.Cut) }))
		refused(s.move(ctx, "--to", two), `member "cluster39"`, untouched)
		s.safe(ctx, files)
		Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Pass)).To(Succeed())
		Expect(x.AwaitReady(ctx, two)).To(Succeed())
		r := s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		s.moved(ctx, files)
	}, SpecTimeout(storyTime))

	It("ends if another run takes over", func(ctx SpecContext) {
		s := begin(ctx)
		write(s.disk(ctx, s.volume), "text", "hello")
		files := look(ctx, s.disk(ctx, s.volume))
		kubelets[one].Before(once(sums, 1, func(kubelet.Command) error {
			defer GinkgoRecover()
			second := s.move(ctx, "--to", two)
			Expect(second.code).To(BeZero(), second.err)
			return nil
		}))
		first := s.move(ctx, "--to", two)
		Expect(first.code).NotTo(BeZero())
		s.moved(ctx, files)
	}, SpecTimeout(storyTime))

	It("moves the claims of a StatefulSet in order", func(ctx SpecContext) {
		s := begin(ctx)
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"}}
		labels := map[string]string{"app": "db"}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		set.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: harness.Pod("", "").Spec}
		set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "disk", MountPath: "/disk"}}
		set.Spec.Replicas = ptr.To[int32](2)
		template := harness.Claim("", "disk", class)
		template.Namespace = ""
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*template}
		set.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: nodeOne}
		Expect(x.Host.Create(ctx, set)).To(Succeed())
		disks := map[string]string{}
		for _, n := range []string{"0", "1"} {
			suite.Until[corev1.Pod](ctx, x.Host, s.namespace, "db-"+n, HaveField("Status.Phase", corev1.PodRunning))
			claim, err := suite.Read[corev1.PersistentVolumeClaim](ctx, x.Host, s.namespace, "disk-db-"+n)
			Expect(err).NotTo(HaveOccurred())
			disks[claim.Name] = claim.Spec.VolumeName
			write(s.disk(ctx, claim.Spec.VolumeName), "number", n)
		}
		run := func(args ...string) result {
			GinkgoHelper()
			return plugin(ctx, kubeconfig, append([]string{"move", "statefulset", "db", "-n", s.namespace, "--yes", "--timeout=60s"}, args...)...)
		}
		scale := func(n int) {
			GinkgoHelper()
			patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
			Expect(x.Host.API.Patch(ctx, set, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
			for i := n; i < 2; i++ {
				suite.Gone[corev1.Pod](ctx, x.Host, s.namespace, fmt.Sprintf("db-%d", i))
			}
		}
		in := func(name, member string) {
			GinkgoHelper()
			claim := suite.Until[corev1.PersistentVolumeClaim](ctx, x.Host, s.namespace, name, HaveField("Status.Phase", corev1.ClaimBound))
			pv, err := suite.Read[corev1.PersistentVolume](ctx, x.Host, "", claim.Spec.VolumeName)
			Expect(err).NotTo(HaveOccurred())
			Expect(pv.Labels).To(HaveKeyWithValue(v1alpha1.LabelCluster, member))
			Expect(os.ReadFile(filepath.Join(s.disk(ctx, pv.Name), "number"))).To(BeEquivalentTo(name[len(name)-1:]))
		}
		refused(run("--to", two), "has 2 replicas", "kubectl scale statefulset db --replicas=0")
		refused(run("--to", two, "--ordinal=1"), "kubectl scale statefulset db --replicas=1")

		By("moving one Pod's claim")
		scale(1)
		r := run("--to", two, "--ordinal=1")
		Expect(r.code).To(BeZero(), r.err)
		in("disk-db-0", one)
		in("disk-db-1", two)

		By("moving all claims, one of which is already in the member")
		scale(0)
		r = run("--to", two)
		Expect(r.code).To(BeZero(), r.err)
		in("disk-db-0", two)
		in("disk-db-1", two)
		patch := []byte(`{"spec":{"replicas":2,"template":{"spec":{"nodeSelector":null}}}}`)
		Expect(x.Host.API.Patch(ctx, set, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
		for _, n := range []string{"0", "1"} {
			suite.Until[corev1.Pod](ctx, x.Host, s.namespace, "db-"+n, And(HaveField("Status.Phase", corev1.PodRunning), HaveField("Spec.NodeName", nodeTwo)))
		}

		By("undoing the moves, and destroying the disks that they left")
		scale(0)
		r = run("--undo")
		Expect(r.code).To(BeZero(), r.err)
		for name := range disks {
			in(name, one)
		}
		r = run("--delete-source")
		Expect(r.code).To(BeZero(), r.err)
		Expect(x.Host.API.Delete(ctx, set)).To(Succeed())
	}, SpecTimeout(2*storyTime))

	It("copies a block device byte by byte", func(ctx SpecContext) {
		block := corev1.PersistentVolumeBlock
		s := begin(ctx, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeMode = &block
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("8Mi")
		})
		data := []byte(strings.Repeat("0123456789abcdef", 8<<16))
		Expect(os.WriteFile(s.disk(ctx, s.volume), data, 0o600)).To(Succeed())
		kubelets[two].Before(once(sums, 1, func(c kubelet.Command) error {
			return os.WriteFile(c.Disk, append([]byte("x"), data[1:]...), 0o600)
		}))
		refused(s.move(ctx, "--to", two), "the disks differ")
		r := s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		Expect(os.ReadFile(s.disk(ctx, s.claim(ctx).Spec.VolumeName))).To(Equal(data))
		Expect(os.ReadFile(s.disk(ctx, s.volume))).To(Equal(data))
		Expect(s.claim(ctx).Spec.VolumeName).NotTo(Equal(s.volume))
	}, SpecTimeout(storyTime))
})

func write(dir, name, content string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
}
