package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/xylem-io/xylem/test/e2e/fleet"
)

const (
	// moveFilesEnv is the environment variable with the number of files that the move story creates.
	moveFilesEnv = "E2E_MOVE_FILES"
	// fileSize is the size of each file in bytes. 10,000 files have 1 GiB in total.
	fileSize = 107374
	// defaultMoveFiles is the number of files if the variable is not set. They have 100 MiB in total.
	defaultMoveFiles = 1000
	// moveTime is the timeout of the story, in which the command runs a dozen times.
	moveTime = 40 * time.Minute
)

// moves is the move story.
func moves(ctx SpecContext) {
	const namespace, claim = "moving", "ledger"
	offersDisks(ctx)
	files := defaultMoveFiles
	if set := os.Getenv(moveFilesEnv); set != "" {
		var err error
		files, err = strconv.Atoi(set)
		Expect(err).NotTo(HaveOccurred(), moveFilesEnv)
		Expect(files%100 == 0 && files > 0).To(BeTrue(), "%s=%d must be a multiple of 100", moveFilesEnv, files)
	}
	apply(ctx, world.Host(), sample("storageclass.yaml"))
	makeNamespace(ctx, namespace)
	claimed, _, _ := strings.Cut(workload(namespace, claim, fleet.First), "---")
	apply(ctx, world.Host(), claimed)
	user := mover{namespace: namespace, claim: claim, bytes: int64(files) * fileSize}

	By(fmt.Sprintf("a Pod writes %d files", files))
	user.pod(ctx, fleet.First)
	user.inPod(ctx, fmt.Sprintf(`cd /data
for d in $(seq 100); do
  mkdir d$d
  head -c %d /dev/urandom | split -d -a 4 -b %d - d$d/f
done
chown -R 1001:1002 d1
chmod 0640 d2/*
ln d3/f0000 d3/hard
ln -s ../d3/f0000 d4/soft
truncate -s 64M holes
sync`, files/100*fileSize, fileSize))
	written := user.content(ctx)
	user.end(ctx)

	By("the user moves the claim, first with --dry-run")
	run(ctx, world.Host(), "kubectl", append(user.move(fleet.Second), "--dry-run")...)
	began := time.Now()
	points := user.lines(run(ctx, world.Host(), "kubectl", user.move(fleet.Second)...))
	AddReportEntry(fmt.Sprintf("moved %d files with %d MiB", files, user.bytes>>20), time.Since(began).Round(time.Second).String())
	user.pod(ctx, fleet.Second)
	Expect(user.content(ctx)).To(Equal(written))
	user.end(ctx)
	Expect(onKind.Files(ctx, fleet.First)).To(ContainElement(ContainSubstring(namespace)), "the old disk is kept")
	run(ctx, world.Host(), "kubectl", user.args("--delete-source", "--yes")...)
	Eventually(func() ([]string, error) { return onKind.Files(ctx, fleet.First) }).WithContext(ctx).ShouldNot(ContainElement(ContainSubstring(namespace)))

	By("the user moves it back, and each run of the command is killed at a different point")
	began = time.Now()
	kills := user.killed(ctx, fleet.First, points)
	AddReportEntry(fmt.Sprintf("moved back, killed at %d points", len(kills)), time.Since(began).Round(time.Second).String()+"\n"+strings.Join(kills, "\n"))
	Expect(len(kills)).To(BeNumerically(">=", 10), "%q", kills)
	user.pod(ctx, fleet.First)
	Expect(user.content(ctx)).To(Equal(written))
	user.end(ctx)
	run(ctx, world.Host(), "kubectl", user.args("--delete-source", "--yes")...)
	run(ctx, world.Host(), "kubectl", "-n", namespace, "get", "pods,pvc,configmaps", "-o", "wide")
	removeNamespace(ctx, namespace)
	for _, member := range []string{fleet.First, fleet.Second} {
		Eventually(func() ([]string, error) { return onKind.Files(ctx, member) }).WithContext(ctx).ShouldNot(ContainElement(ContainSubstring(namespace)))
	}
}

// mover is a user who moves a claim.
type mover struct {
	namespace, claim string
	bytes            int64
}

func (m mover) args(more ...string) []string {
	return append([]string{"xylem", "move", "pvc", m.claim, "--namespace", m.namespace}, more...)
}

func (m mover) move(to string) []string { return m.args("--to", to, "--yes") }

// pod runs a Pod with the claim in a member.
func (m mover) pod(ctx context.Context, registration string) {
	GinkgoHelper()
	shellPod(ctx, m.namespace, "shell", m.claim, registration)
}

func (m mover) inPod(ctx context.Context, script string) string {
	GinkgoHelper()
	return run(ctx, world.Host(), "kubectl", "-n", m.namespace, "exec", "shell", "--", "sh", "-euc", script)
}

// end deletes the Pod.
func (m mover) end(ctx context.Context) {
	GinkgoHelper()
	run(ctx, world.Host(), "kubectl", "-n", m.namespace, "delete", "pod", "shell", "--timeout", settle.String())
}

// content returns checksums of all files, and of their names, modes, owners, links and times.
func (m mover) content(ctx context.Context) string {
	GinkgoHelper()
	return m.inPod(ctx, `cd /data
find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum
find . -mindepth 1 -printf '%p %y %m %U %G %n %T@ %l\n' | sort | sha256sum
find . -type f | wc -l`)
}

var names = regexp.MustCompile(`"[^"]*"|[0-9.]+ [KMG]?i?B`)

// lines returns the kinds of lines that a run printed about its steps: those after the plan, except
// the last one.
func (mover) lines(out string) []string {
	GinkgoHelper()
	_, steps, planned := strings.Cut(out, "--delete-source\n")
	Expect(planned).To(BeTrue(), out)
	var points []string
	all := strings.Split(strings.TrimSpace(steps), "\n")
	for _, line := range all[:len(all)-1] {
		points = append(points, point(points, line))
	}
	return points
}

// point returns a line's kind, which is the line without names and sizes, and its position among
// the lines of this kind.
func point(earlier []string, line string) string {
	kind := names.ReplaceAllString(strings.TrimSpace(line), "…")
	same := 0
	for _, e := range earlier {
		if strings.HasPrefix(e, kind+" #") {
			same++
		}
	}
	return fmt.Sprintf("%s #%d", kind, same+1)
}

// killed moves the claim. It kills a run when the run prints one of the points that no earlier run
// reached, and also when a quarter and three quarters of the data have been copied.
func (m mover) killed(ctx context.Context, to string, points []string) []string {
	GinkgoHelper()
	parts := []float64{0.25, 0.75}
	var visited, kills []string
	for {
		run, end := context.WithCancel(ctx)
		cmd := command(run, world.Host(), "kubectl", m.move(to)...)
		reason, err := m.watch(run, cmd, to, points, &visited, &parts)
		end()
		if reason == "" {
			Expect(err).NotTo(HaveOccurred())
			return kills
		}
		kills = append(kills, reason)
	}
}

// watch runs the command. It returns the point at which it killed the command, or "" if the command
// exited on its own.
func (m mover) watch(ctx context.Context, cmd *exec.Cmd, to string, points []string, visited *[]string, parts *[]float64) (string, error) {
	GinkgoHelper()
	out, err := cmd.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	cmd.Stderr = GinkgoWriter
	Expect(cmd.Start()).To(Succeed())
	scanner, printed := bufio.NewScanner(out), []string(nil)
	for scanner.Scan() {
		fmt.Fprintln(GinkgoWriter, scanner.Text())
		at := point(printed, scanner.Text())
		printed = append(printed, at)
		if !slices.Contains(points, at) {
			continue
		}
		reason := ""
		if !slices.Contains(*visited, at) {
			*visited, reason = append(*visited, at), at
		} else if strings.HasPrefix(at, "Copying") && len(*parts) > 0 {
			reason = fmt.Sprintf("%s, %.0f %% copied", at, (*parts)[0]*100)
			Eventually(func() (int64, error) { return onKind.Size(ctx, to, "*_"+m.namespace+"_*") }).WithContext(ctx).WithPolling(100 * time.Millisecond).
				Should(BeNumerically(">", int64((*parts)[0]*float64(m.bytes))))
			*parts = (*parts)[1:]
		}
		if reason != "" {
			fmt.Fprintf(GinkgoWriter, "killed: %s\n", reason)
			Expect(cmd.Process.Kill()).To(Succeed())
			_ = cmd.Wait() // it was killed
			return reason, nil
		}
	}
	return "", cmd.Wait()
}
