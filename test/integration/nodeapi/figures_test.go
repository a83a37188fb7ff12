package nodeapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/xylem-io/xylem/test/controlplane"
)

// megabytes is the amount of streamed data.
const megabytes = 64

var _ = Describe("The path through the host", func() {
	It("is compared with a direct connection to the member", func(ctx SpecContext) {
		file := x.Fleet.Member(one).KubeletLogFile()
		writeLog(file, megabytes<<20)
		DeferCleanup(func() { Expect(os.WriteFile(file, []byte(controlplane.KubeletLog), 0o600)).To(Succeed()) })
		host, member := x.Fleet.Host.KubeconfigPath(), x.Fleet.Member(one).KubeconfigPath()
		for what, args := range map[string][]string{
			"exec": {"exec", "web", "-c", "app", "--", "head", "-c", fmt.Sprint(megabytes << 20), "/dev/zero"},
			"logs": {"logs", "web", "-c", "app"},
		} {
			direct, bytes := rate(ctx, member, args)
			through, same := rate(ctx, host, args)
			Expect(same).To(Equal(bytes), what)
			AddReportEntry(what, fmt.Sprintf("%d bytes: %.1f MB/s directly in the member, %.1f MB/s through the host", bytes, direct, through))
		}
	}, SpecTimeout(4*settle))
})

// writeLog writes a container log of about the given size, with long lines.
func writeLog(file string, size int) {
	GinkgoHelper()
	f, err := os.Create(file)
	Expect(err).NotTo(HaveOccurred())
	w := bufio.NewWriter(f)
	line := "2026-11-01T00:00:00.000000000Z stdout F " + strings.Repeat("x", 1000) + "\n"
	for written := 0; written < size; written += len(line) {
		_, err := w.WriteString(line)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(w.Flush()).To(Succeed())
	Expect(f.Close()).To(Succeed())
}

// rate returns the throughput of kubectl's output in megabytes per second, and the output's size.
func rate(ctx context.Context, kubeconfig string, args []string) (float64, int64) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, x.Fleet.Kubectl(), append([]string{"--kubeconfig", kubeconfig, "-n", "shop"}, args...)...)
	command.Env = append(os.Environ(), x.Fleet.KubectlCache())
	out, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	started := time.Now()
	Expect(command.Start()).To(Succeed())
	bytes, err := io.Copy(io.Discard, out)
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Wait()).To(Succeed())
	return float64(bytes) / 1e6 / time.Since(started).Seconds(), bytes
}
