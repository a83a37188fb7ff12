package stories_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const (
	settle = suite.Settle
	// storyTime is the timeout of a story.
	storyTime = 4 * time.Minute
)

// Names of the members, and of their nodes in the host.
const (
	one, nodeOne = "cluster38", "kosmos-cluster38"
	two, nodeTwo = "cluster39", "kosmos-cluster39"
	plainNode    = "host-node-1"
)

// StorageClasses in the host, in addition to the sample's class.
const (
	// classMirror waits for a consumer, allows expansion and has policy Delete, in the host and in
	// the members.
	classMirror = controlplane.ClassHostpath
	// classRetainHost has policy Retain in the host, and maps to a member class with policy Delete.
	classRetainHost = "retain-host"
	// classRetained has policy Delete in the host. The members' class with the same name has policy
	// Retain.
	classRetained = controlplane.ClassRetained
	// classParameter maps to the members' Immediate class through its parameter.
	classParameter = "by-parameter"
	// classMapped maps to the same class through the registrations' mapping.
	classMapped = "by-mapping"
	// classLimited allows volumes of at most limitedBytes.
	classLimited = "limited"
	limitedBytes = "1073741824"
	// classImmediate is rejected in mirror mode.
	classImmediate = "immediate-host"
	// classMissing does not exist in members.
	classMissing = "missing"
)

// x contains the host, its members and the manager, which all stories share.
var x *harness.Xylem

func TestStories(t *testing.T) {
	suite.Run(t, "Stories")
}

var _ = suite.On(&x, func(SpecContext) harness.Options {
	return harness.Options{
		Members:      []controlplane.ClusterOptions{memberOptions(one), memberOptions(two)},
		Unregistered: true,
		ManagerArgs: []string{"--node-grace=" + suite.NodeGrace.String(), "--stuck-after=" + suite.StuckAfter.String(), "--silent-after=" + suite.SilentAfter.String(),
			"--renew-tokens-after=0.01"}, // a token for ten minutes is renewed after 6 seconds
	}
}, func(ctx SpecContext) {
	By("creating the host's classes")
	_, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "-f", x.Root("config", "samples", "storageclass.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for _, class := range []*storagev1.StorageClass{
		hostClass(classRetainHost, classMirror, func(c *storagev1.StorageClass) { *c.ReclaimPolicy = corev1.PersistentVolumeReclaimRetain }),
		hostClass(classRetained, ""), hostClass(classParameter, controlplane.ClassFast), hostClass(classMapped, ""),
		hostClass(classLimited, ""), hostClass(classMissing, ""),
		hostClass(classImmediate, classMirror, func(c *storagev1.StorageClass) { *c.VolumeBindingMode = storagev1.VolumeBindingImmediate }),
	} {
		Expect(x.Host.API.Create(ctx, class)).To(Succeed())
	}
	for _, class := range promiseClasses() {
		Expect(x.Host.API.Create(ctx, class)).To(Succeed())
	}
	By("registering the members")
	for _, name := range []string{one, two} {
		Expect(x.Register(ctx, name, name, mapped)).To(Succeed())
	}
})

// memberOptions returns the options of a member that has classLimited in addition to the default
// classes.
func memberOptions(name string) controlplane.ClusterOptions {
	storage := controlplane.DefaultStorage()
	storage.CallTimeout = suite.CallTimeout
	limited := controlplane.Class(classLimited, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
	limited.Parameters = map[string]string{csidriver.ParamMaxBytes: limitedBytes}
	storage.Classes = append(storage.Classes, limited)
	return controlplane.ClusterOptions{Name: name, Storage: storage}
}

// PriorityClasses in the host, and the members' classes to which the registrations map them.
const (
	priorityGranted, leafPriorityGranted     = "granted-host", "granted-member"
	priorityUngranted, leafPriorityUngranted = "ungranted-host", "ungranted-member"
	priorityAbsent, leafPriorityAbsent       = "absent-host", "absent-member"
	priorityUnmapped                         = "unmapped-host"
)

// mapped sets the mapping of classMapped to the members' Immediate class in a registration, and the mapping of
// PriorityClasses.
func mapped(cr *v1alpha1.ClusterRegistration) {
	cr.Spec.Pods.PriorityClasses = []v1alpha1.ClassMapping{
		{Host: priorityGranted, Member: leafPriorityGranted}, {Host: priorityUngranted, Member: leafPriorityUngranted}, {Host: priorityAbsent, Member: leafPriorityAbsent},
	}
	cr.Spec.Storage.Classes = []v1alpha1.ClassMapping{{Host: classMapped, Member: controlplane.ClassFast}}
}

func hostClass(name, member string, change ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	class := controlplane.Class(name, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
	class.Provisioner = v1alpha1.ProvisionerName
	if member != "" {
		class.Parameters = map[string]string{v1alpha1.ParameterMemberClass: member}
	}
	for _, f := range change {
		f(&class)
	}
	return &class
}

// newNamespace creates a namespace in the host, and returns its name. It generates the name if that
// is empty.
func newNamespace(ctx context.Context, name string) string {
	GinkgoHelper()
	name = cmp.Or(name, "story-"+rand.String(5))
	Expect(x.Host.CreateNamespace(ctx, name)).To(Succeed())
	return name
}
