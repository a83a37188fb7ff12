package e2e_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/xylem-io/xylem/test/e2e/fleet"
)

// sharesVolume is the story of a volume that Pods in both members write. The second member owns it.
func sharesVolume(ctx SpecContext) {
	const namespace, claim = "sharing", "files"
	offersDisks(ctx)
	By("the admins allow the shared backend in both members: one with the plugin, one with the chart")
	registerByPlugin(ctx, fleet.First, "--with-exec", "--with-shared-driver", fleet.FilesDriver)
	run(ctx, world.Member(fleet.Second), "helm", "upgrade", "xylem-member", "charts/xylem-member", "--namespace", system,
		"--reset-then-reuse-values", "--set", "shared.drivers={"+fleet.FilesDriver+"}")
	for _, name := range []string{fleet.First, fleet.Second} {
		run(ctx, world.Host(), "kubectl", "patch", "clusterregistration", name, "--type=merge", "--patch",
			fmt.Sprintf(`{"spec":{"storage":{"shared":[{"name":"files","driver":%q,"classes":[%q]}]}}}`, fleet.FilesDriver, fleet.Files))
	}
	apply(ctx, world.Host(), sample("storageclass.yaml", "name: openebs-hostpath", "name: "+fleet.Files))
	makeNamespace(ctx, namespace)
	apply(ctx, world.Host(), fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, namespace: %s}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: %s
  resources: {requests: {storage: 64Mi}}
`, claim, namespace, fleet.Files))

	before, err := onKind.Shared(ctx) // an earlier run may have failed
	Expect(err).NotTo(HaveOccurred())

	By("Pods in both members write to the volume, and read what the other wrote")
	in := func(member, script string) string {
		GinkgoHelper()
		return run(ctx, world.Host(), "kubectl", "-n", namespace, "exec", "on-"+member, "--", "sh", "-euc", script)
	}
	shellPod(ctx, namespace, "on-"+fleet.Second, claim, fleet.Second)
	in(fleet.Second, "echo 'from "+fleet.Second+"' > /data/log")
	shellPod(ctx, namespace, "on-"+fleet.First, claim, fleet.First)
	in(fleet.First, "echo 'from "+fleet.First+"' >> /data/log")
	for _, member := range []string{fleet.First, fleet.Second} {
		Expect(in(member, `while read -r line; do echo "$line"; done < /data/log`)).To(ContainSubstring("from " + fleet.Second + "\nfrom " + fleet.First + "\n"))
	}
	Expect(onKind.Shared(ctx)).To(HaveLen(len(before)+1), "the volume must have been provisioned once")
	run(ctx, world.Host(), "kubectl", "-n", namespace, "get", "pods,pvc", "-o", "wide")
	run(ctx, world.Host(), "kubectl", "xylem", "tree", "pvc", claim, "--namespace", namespace)
	for _, member := range world.Members() {
		run(ctx, member, "kubectl", "-n", namespace, "get", "pods,pvc", "-o", "wide")
	}

	By("the Pod in the volume's own member ends, and the other continues")
	run(ctx, world.Host(), "kubectl", "-n", namespace, "delete", "pod", "on-"+fleet.Second, "--timeout", settle.String())
	in(fleet.First, "echo 'alone' >> /data/log")

	By("the claim is deleted: first the copy is removed, then the volume")
	removeNamespace(ctx, namespace)
	Eventually(func() ([]string, error) { return onKind.Shared(ctx) }).WithContext(ctx).Should(ConsistOf(before))
	Expect(strings.TrimSpace(run(ctx, world.Member(fleet.First), "kubectl", "get", "pv", "-o", "name"))).NotTo(ContainSubstring("xylem-copy"))
}
