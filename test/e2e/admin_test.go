package e2e_test

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/e2e/fleet"
)

// These specs run an admin's tasks with the commands from the documentation.

const system = v1alpha1.DefaultNamespace

// managerImage returns the repository and tag of the image that `make image` builds.
func managerImage() (repository, tag string) {
	repository, tag, _ = strings.Cut(cmp.Or(os.Getenv("IMG"), "xylem:dev"), ":")
	return repository, cmp.Or(tag, "latest")
}

// next is a second tag of the same image, for upgrade specs.
const next = "next"

func install(ctx context.Context) {
	GinkgoHelper()
	repository, tag := managerImage()
	run(ctx, world.Host(), "helm", "install", "xylem", "charts/xylem", "--namespace", system, "--create-namespace",
		"--set", "image.repository="+repository, "--set", "image.tag="+tag, "--wait", "--timeout", settle.String())
}

func upgrade(ctx context.Context) {
	GinkgoHelper()
	repository, tag := managerImage()
	Expect(onKind.Retag(repository+":"+tag, repository+":"+next)).To(Succeed())
	// Renew tokens early, so that a story does not wait for hours.
	run(ctx, world.Host(), "helm", "upgrade", "xylem", "charts/xylem", "--namespace", system, "--reset-then-reuse-values",
		"--set", "image.tag="+next, "--set", "renewTokensAfter=0.1", "--wait", "--timeout", settle.String())
}

// works runs `helm test`, and expects it to succeed.
func works(ctx context.Context) {
	GinkgoHelper()
	out := run(ctx, world.Host(), "helm", "test", "xylem", "--namespace", system, "--timeout", settle.String())
	Expect(out).To(MatchRegexp(`(?m)^Phase: +Succeeded$`))
	Expect(out).To(ContainSubstring("ok      "), "helm test prints its checks")
	Expect(out).NotTo(ContainSubstring("FAILED"))
}

// registerByPlugin registers a member as the documentation describes.
func registerByPlugin(ctx context.Context, name string, flags ...string) {
	GinkgoHelper()
	member := world.Member(name)
	run(ctx, world.Host(), "kubectl", append([]string{"xylem", "register", name, "--member-kubeconfig", member.Kubeconfig,
		"--member-server", onKind.Server(name), "--pod-cidrs", v1alpha1.AllPodCIDRs}, flags...)...)
	registered(ctx, name)
}

// registerByHand registers a member without the plugin, like users who manage everything in
// manifests: with the member's chart, a Secret and a ClusterRegistration.
func registerByHand(ctx context.Context, name string) {
	GinkgoHelper()
	member := world.Member(name)
	run(ctx, member, "helm", "install", "xylem-member", "charts/xylem-member", "--namespace", system, "--create-namespace")
	day := int64(24 * 60 * 60)
	token, err := member.Typed.CoreV1().ServiceAccounts(system).CreateToken(ctx, "xylem",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	file := member.Kubeconfig + ".member"
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: name,
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: onKind.Server(name), CertificateAuthorityData: member.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token.Status.Token}},
	}, file)).To(Succeed())
	DeferCleanup(os.Remove, file)
	run(ctx, world.Host(), "kubectl", "--namespace", system, "create", "secret", "generic", name+"-kubeconfig", "--from-file=kubeconfig="+file)
	registerAgain(ctx, name)
}

// registerAgain registers a member whose Secret exists.
func registerAgain(ctx context.Context, name string) {
	GinkgoHelper()
	if onKind == nil {
		Expect(world.(*fleet.Loopback).Register(ctx, name)).To(Succeed())
	} else {
		apply(ctx, world.Host(), strings.ReplaceAll(sample("clusterregistration.yaml"), fleet.First, name)+"  node: {podCIDRs: ["+v1alpha1.AllPodCIDRs+"]}\n")
	}
	registered(ctx, name)
}

// deregisterByPlugin deregisters a member that registerByPlugin registered, and removes what
// the plugin created in the member.
func deregisterByPlugin(ctx context.Context, name string) {
	GinkgoHelper()
	file := world.Member(name).Kubeconfig
	run(ctx, world.Host(), "kubectl", "xylem", "deregister", name, "--member-kubeconfig", file, "--dry-run")
	run(ctx, world.Host(), "kubectl", "xylem", "deregister", name, "--member-kubeconfig", file, "--yes")
}

// deregister confirms that a member's Pods may be evicted, and deregisters the member.
func deregister(ctx context.Context, name string) {
	GinkgoHelper()
	resource := "clusterregistration/" + name
	run(ctx, world.Host(), "kubectl", "annotate", resource, v1alpha1.AnnotationConfirmDeregister+"="+name)
	run(ctx, world.Host(), "kubectl", "delete", resource, "--timeout", settle.String())
}

// tree prints the tree of a claim, including the member's objects.
func tree(ctx context.Context, namespace, claim string) {
	GinkgoHelper()
	out := run(ctx, world.Host(), "kubectl", "xylem", "tree", "pvc", claim, "--namespace", namespace,
		"--member-kubeconfig", world.Member(fleet.First).Kubeconfig)
	Expect(out).To(ContainSubstring(fleet.First))
}

// uninstall removes what the admin and the tests' user have created, in the order that the
// documentation gives.
func uninstall(ctx context.Context) {
	GinkgoHelper()
	run(ctx, world.Host(), "kubectl", "delete", "storageclass", fleet.Class, fleet.Disks, "just-in-time", "--ignore-not-found")
	run(ctx, world.Host(), "kubectl", "delete", "volumesnapshotclass", "snapshots", "--ignore-not-found")
	run(ctx, world.Host(), "kubectl", "--namespace", system, "delete", "secret", fleet.Second+"-kubeconfig")
	run(ctx, world.Host(), "helm", "uninstall", "xylem", "--namespace", system, "--wait", "--timeout", settle.String())
	run(ctx, world.Member(fleet.Second), "helm", "uninstall", "xylem-member", "--namespace", system, "--wait", "--timeout", settle.String())
}

// removeSystem removes the manager's namespace in each cluster, because Helm does not remove
// namespaces. The CRD stays.
func removeSystem(ctx context.Context) {
	GinkgoHelper()
	for _, c := range everywhere() {
		run(ctx, c, "kubectl", "delete", "namespace", system, "--ignore-not-found", "--timeout", settle.String())
	}
}

// crd lists the CRD, and the object that the API server derives from it.
var crd = []string{
	"customresourcedefinitions.apiextensions.k8s.io clusterregistrations.cluster.xylem.io",
	"apiservices.apiregistration.k8s.io v1alpha1.cluster.xylem.io",
}

// asked reports whether an object may stay when the charts are uninstalled: the CRD, which the
// chart keeps by default; the namespace, which Helm never removes, with the objects that
// Kubernetes creates in every namespace; and its Leases, which Xylem uses to recognize a member
// that is registered again, or a second manager.
func asked(c *fleet.Cluster, object string) bool {
	switch object {
	case "namespaces " + system, "configmaps " + system + "/kube-root-ca.crt", "serviceaccounts " + system + "/default":
		return true
	}
	if slices.Contains(crd, object) {
		return c.Name == fleet.HostName
	}
	return strings.HasPrefix(object, "leases.coordination.k8s.io "+system+"/")
}
