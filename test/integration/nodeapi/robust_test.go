package nodeapi_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

var _ = Describe("sessions", func() {
	admin := func() ([]byte, error) {
		return x.Fleet.Host.UserKubeconfig(controlplane.Direct, "admin", "system:masters")
	}

	It("leave no goroutines or memory behind, even after a thousand of them", func(ctx SpecContext) {
		const rounds, beside = 25, 20 // with two sessions each: logs and exec
		client := caller(admin)
		config, _ := credentials(admin)
		one := func() error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+logPath+"?tailLines=1", nil)
			if err != nil {
				return err
			}
			response, err := client.Do(r)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				return err
			}
			if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
				return fmt.Errorf("logs: %s, %w", response.Status, err)
			}
			conn, reader := dial(ctx, address, config, "POST", "/exec/shop/web/app?command=true&output=1&error=1", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n")
			upgraded, err := http.ReadResponse(reader, nil)
			if err != nil {
				return err
			}
			if err := conn.Close(); err != nil || upgraded.StatusCode != http.StatusSwitchingProtocols {
				return fmt.Errorf("exec: %s, %w", upgraded.Status, err)
			}
			return nil
		}
		batch := func() {
			GinkgoHelper()
			var group errgroup.Group
			for range beside {
				group.Go(func() error {
					defer GinkgoRecover()
					return one()
				})
			}
			Expect(group.Wait()).To(Succeed())
		}
		settled := func() float64 {
			GinkgoHelper()
			Eventually(ctx, sessions).WithContext(ctx).Should(BeZero())
			goroutines, err := metric(ctx, "go_goroutines")
			Expect(err).NotTo(HaveOccurred())
			return goroutines
		}
		batch() // includes one-time allocations
		before, memory := settled(), resident()
		for range rounds {
			batch()
		}
		// The authenticator's caches and the Go runtime have a varying number of goroutines.
		Eventually(ctx, settled).WithContext(ctx).Should(BeNumerically("<", before+50))
		AddReportEntry(fmt.Sprintf("before and after %d sessions", 2*rounds*beside), fmt.Sprintf("goroutines %v, %v; resident MiB %d, %d", before, settled(), memory, resident()))
	}, SpecTimeout(4*settle))

	It("end within 30 s if their member hangs, while those to other members continue", func(ctx SpecContext) {
		following, cancel := context.WithCancel(ctx)
		defer cancel()
		r, err := http.NewRequestWithContext(following, http.MethodGet, "https://"+address+"/containerLogs/shop/other/app?follow=true", nil)
		Expect(err).NotTo(HaveOccurred())
		response, err := caller(admin).Do(r)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(response.Body.Close)
		Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Blackhole)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		}, NodeTimeout(settle))
		limited, end := context.WithTimeout(ctx, answer)
		defer end()
		var group errgroup.Group
		for _, path := range []string{"/containerLogs/shop/other/app", "/metrics/resource/" + nodeTwo} {
			group.Go(func() error {
				defer GinkgoRecover()
				code, content := ask(limited, caller(admin), path)
				Expect(code).To(BeNumerically(">=", http.StatusInternalServerError), content)
				Expect(content).To(And(ContainSubstring(two), Not(ContainSubstring("\n"))))
				return nil
			})
		}
		result := kubectl(limited, "", nil, "exec", "other", "-c", "app", "--", "true")
		Expect(result.code).NotTo(BeZero())
		Expect(limited.Err()).NotTo(HaveOccurred(), "kubectl hangs")
		Expect(group.Wait()).To(Succeed())
		Expect(kubectl(ctx, "", nil, "logs", "web", "-c", "app", "--tail=1").out).To(Equal("third line\n"))
		By("the open stream must end with the link")
		_, err = io.Copy(io.Discard, response.Body)
		Expect(following.Err()).NotTo(HaveOccurred())
		Eventually(ctx, sessions).WithContext(ctx).Should(BeZero())
		_ = err // the response does not matter
	}, SpecTimeout(2*settle))

	It("have the address of the replica that has the links, even after another replica takes over", func(ctx SpecContext) {
		_, port, err := net.SplitHostPort(address)
		Expect(err).NotTo(HaveOccurred())
		Expect(x.Manager.Stop()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Manager.Start(ctx)).To(Succeed())
			at(ctx, "127.0.0.1")
		}, NodeTimeout(2*settle))
		replica := func(name, ip string) *harness.Manager {
			GinkgoHelper()
			m, err := x.AnotherManager(ctx, name, x.Fleet.Host, "--leader-elect",
				"--node-api-bind-address="+net.JoinHostPort(ip, port), "--node-api-advertise-address="+ip)
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Start(ctx)).To(Succeed())
			DeferCleanup(func() { Expect(m.Stop()).To(Succeed()) })
			return m
		}
		first := replica("first", "127.0.0.2")
		at(ctx, "127.0.0.2")
		replica("second", "127.0.0.3")
		client := caller(admin)
		Eventually(ctx, func(g Gomega) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort("127.0.0.3", port)+logPath, nil)
			g.Expect(err).NotTo(HaveOccurred())
			response, err := client.Do(r)
			g.Expect(err).NotTo(HaveOccurred())
			defer func() { _ = response.Body.Close() }()
			g.Expect(response).To(And(HaveHTTPStatus(http.StatusServiceUnavailable), HaveHTTPBody(ContainSubstring("only the leading replica ("))))
		}).WithContext(ctx).Should(Succeed())
		Expect(first.Stop()).To(Succeed())
		at(ctx, "127.0.0.3")
	}, SpecTimeout(5*settle))
})

// at waits until virtual nodes have an address, and Pods can be reached through it.
func at(ctx context.Context, ip string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		for _, name := range []string{nodeOne, nodeTwo} {
			var node corev1.Node
			g.Expect(x.Host.API.Get(ctx, client.ObjectKey{Name: name}, &node)).To(Succeed())
			g.Expect(node.Status.Addresses).To(ContainElement(corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip}))
		}
		g.Expect(kubectl(ctx, "", nil, "logs", "web", "-c", "app", "--tail=1").out).To(Equal("third line\n"))
		g.Expect(kubectl(ctx, "", nil, "logs", "other", "-c", "app", "--tail=1").out).To(Equal("third line\n"))
	}).WithContext(ctx).WithTimeout(2 * settle).WithPolling(time.Second).Should(Succeed())
}
