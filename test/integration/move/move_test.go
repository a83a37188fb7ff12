package move_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/suite"
)

func isBlock(ctx context.Context, namespace, name string) bool {
	GinkgoHelper()
	claim, err := suite.Read[corev1.PersistentVolumeClaim](ctx, x.Host, namespace, name)
	Expect(err).NotTo(HaveOccurred())
	return ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock
}

// hole is the size of a sparse file with almost no data.
const hole = 64 << 20

// fill writes a tree of files with all properties that a copy can lose.
func fill(dir string) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Join(dir, "a directory"), 0o750)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "a directory", "text"), []byte("hello\n"), 0o640)).To(Succeed())
	Expect(os.Chmod(filepath.Join(dir, "a directory", "text"), 0o4755)).To(Succeed())
	Expect(os.Chown(filepath.Join(dir, "a directory", "text"), 999, 998)).To(Succeed())
	Expect(os.Link(filepath.Join(dir, "a directory", "text"), filepath.Join(dir, "hard"))).To(Succeed())
	Expect(os.Symlink("a directory/text", filepath.Join(dir, "soft"))).To(Succeed())
	Expect(os.Chtimes(filepath.Join(dir, "a directory", "text"), time.Time{}, time.Unix(1_600_000_000, 123_456_789))).To(Succeed())
	Expect(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "-strange\nname"), nil, 0o600)).To(Succeed())
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	Expect(err).NotTo(HaveOccurred())
	_, err = sparse.WriteAt([]byte("end"), hole)
	Expect(err).NotTo(HaveOccurred())
	Expect(sparse.Close()).To(Succeed())
	if err := syscall.Setxattr(filepath.Join(dir, "sparse"), "user.color", []byte("green"), 0); err != nil {
		GinkgoWriter.Println("this filesystem does not support extended attributes:", err)
	}
	Expect(os.Chmod(dir, 0o1777)).To(Succeed())
}

// look returns a description of all files in a directory, with their metadata and checksums.
func look(ctx context.Context, dir string) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, "sh", "-c", `cd "$1" && find . -printf '%P|%y|%m|%U|%G|%T@|%n|%l|' \( -type d -printf '\n' -o -printf '%s\n' \) | LC_ALL=C sort && find . -type f -exec sha256sum {} + | LC_ALL=C sort`, "look", dir).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

// moved checks that the claim has its data in the second member, and that the old disk is intact.
func (s *story) moved(ctx context.Context, files string) {
	GinkgoHelper()
	claim := s.claim(ctx)
	Expect(claim.Labels).To(HaveKeyWithValue("app", "db"))
	Expect(claim.Annotations).To(HaveKeyWithValue("note", "mine"))
	Expect(claim.Spec.VolumeName).NotTo(Equal(s.volume))
	pv, err := suite.Read[corev1.PersistentVolume](ctx, x.Host, "", claim.Spec.VolumeName)
	Expect(err).NotTo(HaveOccurred())
	Expect(pv.Labels).To(HaveKeyWithValue(v1alpha1.LabelCluster, two))
	Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete))
	Expect(look(ctx, s.disk(ctx, pv.Name))).To(Equal(files))
	Expect(look(ctx, s.disk(ctx, s.volume))).To(Equal(files))
	suite.Until[corev1.PersistentVolume](ctx, x.Host, "", s.volume, And(
		HaveField("Status.Phase", corev1.VolumeReleased), HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))
	s.only(ctx)
	s.pod(ctx, "after", "data", nodeTwo)
	s.running(ctx, "after")
}

// only checks that the namespace has no other claim, and no Pod that a move created.
func (s *story) only(ctx context.Context) {
	GinkgoHelper()
	var claims corev1.PersistentVolumeClaimList
	Expect(x.Host.API.List(ctx, &claims, client.InNamespace(s.namespace))).To(Succeed())
	Expect(claims.Items).To(HaveLen(1))
	var pods corev1.PodList
	Expect(x.Host.API.List(ctx, &pods, client.InNamespace(s.namespace), client.HasLabels{v1alpha1.LabelMove})).To(Succeed())
	Expect(pods.Items).To(BeEmpty())
}

// unmoved checks that the claim still has its original disk, and that the move left nothing behind.
func (s *story) unmoved(ctx context.Context, files string) {
	GinkgoHelper()
	claim := s.claim(ctx)
	Expect(claim.DeletionTimestamp).To(BeNil())
	Expect(claim.Spec.VolumeName).To(Equal(s.volume))
	Expect(claim.Labels).To(HaveKeyWithValue("app", "db"))
	suite.Until[corev1.PersistentVolume](ctx, x.Host, "", s.volume, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimDelete))
	Expect(look(ctx, s.disk(ctx, s.volume))).To(Equal(files))
	suite.Gone[corev1.ConfigMap](ctx, x.Host, s.namespace, "xylem-move-data")
	Eventually(ctx, func(g Gomega) { // wait until the copy is destroyed
		book, err := x.Member(two).Ledger()
		g.Expect(err).NotTo(HaveOccurred())
		for _, disk := range book.Live() {
			g.Expect(disk.ClaimNamespace).NotTo(Equal(s.namespace))
		}
		s.only(ctx)
	}).WithContext(ctx).Should(Succeed())
	s.pod(ctx, "after", "data", nodeOne)
	s.running(ctx, "after")
}

var _ = Describe("Moving a claim", func() {
	It("preserves all properties of its files, and keeps the old disk until the user deletes it", suite.Core, func(ctx SpecContext) {
		s := begin(ctx)
		fill(s.disk(ctx, s.volume))
		files := look(ctx, s.disk(ctx, s.volume))

		By("showing the plan first")
		for _, dry := range []string{"--dry-run", "--dry-run=server"} {
			r := s.move(ctx, "--to", two, dry)
			Expect(r.code).To(BeZero(), r.err)
			Expect(r.out).To(And(ContainSubstring(`from member "cluster38" to member "cluster39"`), ContainSubstring("Nothing was changed")))
		}
		s.only(ctx)

		r := s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		s.moved(ctx, files)
		var stat syscall.Stat_t
		Expect(syscall.Stat(filepath.Join(s.disk(ctx, s.claim(ctx).Spec.VolumeName), "sparse"), &stat)).To(Succeed())
		Expect(stat.Blocks*512).To(BeNumerically("<", hole/2), "the copy of the sparse file must be sparse")
		value := make([]byte, 16)
		from := filepath.Join(s.disk(ctx, s.volume), "sparse")
		if n, err := syscall.Getxattr(from, "user.color", value); err == nil {
			m, err := syscall.Getxattr(filepath.Join(s.disk(ctx, s.claim(ctx).Spec.VolumeName), "sparse"), "user.color", value)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(value[:m])).To(Equal("green"))
			Expect(n).To(Equal(m))
		}

		By("running again, which changes nothing")
		r = s.move(ctx, "--to", two)
		Expect(r.code).To(BeZero(), r.err)
		Expect(r.out).To(ContainSubstring("was already moved to member"))

		By("destroying the old disk")
		old := s.disk(ctx, s.volume)
		r = s.move(ctx, "--delete-source")
		Expect(r.code).To(BeZero(), r.err)
		suite.Gone[corev1.PersistentVolume](ctx, x.Host, "", s.volume)
		Eventually(func() bool { return exists(old) }).Should(BeFalse())
		Expect(s.claim(ctx).Spec.VolumeName).NotTo(BeEmpty())
		Expect(strings.TrimSpace(s.move(ctx, "--undo").err)).To(ContainSubstring("nothing to undo"))
	}, SpecTimeout(storyTime))
})

var _ = Describe("A move that is killed", func() {
	It("continues after every write, whether or not the server received the write", func(ctx SpecContext) {
		s := begin(ctx)
		fill(s.disk(ctx, s.volume))
		files := look(ctx, s.disk(ctx, s.volume))
		g := newGate()
		seen := map[string]int{}
		for runs := 0; ; runs++ {
			Expect(runs).To(BeNumerically("<", 80), "the move does not advance: %v", seen)
			r, _ := g.run(ctx, atNewWrite(seen), s.args("--to", two)...)
			if r.code == 0 {
				break
			}
			s.safe(ctx, files)
		}
		for write, times := range seen {
			GinkgoWriter.Println(times, write)
		}
		Expect(seen).To(HaveEach(BeNumerically(">=", 2)), "each write must be lost once, and its response once")
		for _, phase := range []string{"Copying", "Swapping", "Sealed", "Rebinding", "Done"} {
			Expect(slices.Collect(maps.Keys(seen))).To(ContainElement(ContainSubstring(`\"phase\":\"` + phase)))
		}
		s.moved(ctx, files)
	}, SpecTimeout(4*storyTime))

	It("can be undone after any of its writes", func(ctx SpecContext) {
		s := begin(ctx)
		fill(s.disk(ctx, s.volume))
		files := look(ctx, s.disk(ctx, s.volume))
		g := newGate()
		_, all := g.run(ctx, never, s.args("--to", two)...)
		r := s.move(ctx, "--undo")
		Expect(r.code).To(BeZero(), r.err)
		Expect(r.out).To(ContainSubstring("Undone"))
		By("keeping the copy, because Pods could write to it")
		Expect(s.claim(ctx).Spec.VolumeName).To(Equal(s.volume))
		Expect(look(ctx, s.disk(ctx, s.volume))).To(Equal(files))
		r = s.move(ctx, "--delete-source")
		Expect(r.code).To(BeZero(), r.err)
		s.unmoved(ctx, files)
		s.deletePod(ctx, "after")

		for n := 1; n < len(all); n++ {
			By("ending the move at write " + all[n-1])
			r, _ := g.run(ctx, at(n, n%2 == 0), s.args("--to", two)...)
			Expect(r.code).NotTo(BeZero())
			s.safe(ctx, files)
			if !s.recorded(ctx) {
				continue
			}
			r, _ = g.run(ctx, at(1+n%4, n%3 == 0), s.args("--undo")...) // this kills the undo, too
			if s.recorded(ctx) {
				r = s.move(ctx, "--undo")
			}
			if s.recorded(ctx) || r.code != 0 && !strings.Contains(r.err, "context canceled") {
				Fail(r.err)
			}
			Expect(s.claim(ctx).Spec.VolumeName).To(Equal(s.volume))
			Expect(look(ctx, s.disk(ctx, s.volume))).To(Equal(files))
			if r := s.move(ctx, "--delete-source"); r.code != 0 { // the undo keeps a copy that Pods may have used
				Expect(r.err).To(ContainSubstring("left a disk"))
			}
		}
		s.unmoved(ctx, files)
	}, SpecTimeout(6*storyTime))
})

// recorded reports whether the claim has the record of a move.
func (s *story) recorded(ctx context.Context) bool {
	GinkgoHelper()
	_, err := suite.Read[corev1.ConfigMap](ctx, x.Host, s.namespace, "xylem-move-data")
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

// safe checks that the old disk has its data, and is not about to be destroyed.
func (s *story) safe(ctx context.Context, files string) {
	GinkgoHelper()
	Expect(look(ctx, s.disk(ctx, s.volume))).To(Equal(files))
	pv, err := suite.Read[corev1.PersistentVolume](ctx, x.Host, "", s.volume)
	Expect(err).NotTo(HaveOccurred())
	Expect(pv.DeletionTimestamp).To(BeNil())
	claim, err := suite.Read[corev1.PersistentVolumeClaim](ctx, x.Host, s.namespace, "data")
	if err != nil || claim.DeletionTimestamp != nil || claim.Spec.VolumeName != s.volume {
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
	}
}
