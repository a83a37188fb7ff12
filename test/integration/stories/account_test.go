package stories_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// account counts Xylem's requests to each cluster since opened() returned it.
type account struct{ harness.Account }

func opened(ctx context.Context) account {
	GinkgoHelper()
	a, err := x.Account(ctx)
	Expect(err).NotTo(HaveOccurred())
	return account{a}
}

// requests returns the requests to a cluster that the account has counted, except those for Leases.
func (a account) requests(ctx context.Context, c *harness.Cluster) controlplane.Requests {
	GinkgoHelper()
	requests, err := x.Requests(ctx, a.Account, c)
	Expect(err).NotTo(HaveOccurred())
	return requests
}

var _ = Describe("Xylem", func() {
	It("makes no writes once everything is settled (I5)", suite.Slow, suite.Core, func(ctx SpecContext) {
		s := begin(ctx)
		offered(ctx, x.Member(one), "at-rest")
		offered(ctx, x.Member(two), "at-rest", retaining)
		reflecting(ctx, one, 8)
		reflecting(ctx, two, 8)
		segment(ctx, x.Member(one), "at-rest", "rack-1", "1Gi")
		room(ctx, x.Member(one), "at-rest", gi)
		guessed(ctx, x.Member(two), "at-rest", gi)
		registration(ctx, two, says(v1alpha1.ConditionClassesReflected, metav1.ConditionFalse, v1alpha1.ReasonReflectionConflict, "at-rest"))
		for i, node := range []string{nodeOne, nodeTwo} {
			name := fmt.Sprintf("data-%d", i)
			s.claim(ctx, name)
			s.pod(ctx, name, using(name), on(node))
		}
		s.claim(ctx, "kept", ofClass(classRetainHost))
		s.pod(ctx, "kept", using("kept"), on(nodeOne))
		s.claim(ctx, "unused")
		s.pod(ctx, "ended", using("data-0"), on(nodeOne), annotated(controlplane.AnnotationComplete, "true"))
		for _, name := range []string{"data-0", "data-1", "kept"} {
			s.running(ctx, name)
		}
		until[corev1.Pod](ctx, s, x.Host, "ended", phase(corev1.PodSucceeded))
		s.deletePod(ctx, "kept")
		s.deleteClaim(ctx, "kept")
		s.grow(ctx, "data-1", "2Gi")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data-1", HaveField("Status.Capacity",
			WithTransform(func(r corev1.ResourceList) string { return r.Storage().String() }, Equal("2Gi"))))
		// Volumes are counted with a delay.
		for member, bound := range map[string]int32{one: 1, two: 1} {
			registration(ctx, member, HaveField("Status.Volumes", Equal(v1alpha1.VolumeCounts{Bound: bound})))
		}
		s.pushedTo(ctx, nodeOne, nodeTwo)

		quiet := func() {
			GinkgoHelper()
			books := opened(ctx)
			s.probed(ctx, 3)
			barrier := begin(ctx)
			barrier.pushedTo(ctx, nodeOne, nodeTwo)
			for _, c := range x.Clusters() {
				requests := books.requests(ctx, c)
				writes := requests.Writes().Where(func(r controlplane.Request) bool {
					return r.Namespace != barrier.namespace && !otherNamespace(s, r)
				})
				Expect(writes).To(BeEmpty(), "in %s:\n%s", c.Name(), writes)
				// Each watch must last for minutes. Otherwise, Xylem would repeatedly list all
				// objects in a large fleet.
				watches := map[string]int{}
				for _, r := range requests {
					if r.Verb == "watch" {
						watches[r.Resource]++
					}
				}
				for resource, n := range watches {
					most := 1
					if c != x.Host && resource == "pods" {
						most = 2 // one for all Pods, and one for this host's Pods
					}
					Expect(n).To(BeNumerically("<=", most), "Xylem began to watch %s %d times in %s", resource, n, c.Name())
				}
			}
		}
		By("waiting until each member was probed three times and a new Pod runs")
		quiet()
		By("repeating the check after a restart of the manager, which reads all objects again (I6)")
		Expect(x.Manager.Stop()).To(Succeed())
		books := opened(ctx)
		Expect(x.Manager.Start(ctx)).To(Succeed())
		s.probed(ctx, 2)
		for _, name := range []string{one, two} {
			Expect(x.AwaitReady(ctx, name)).To(Succeed())
		}
		s.pushedTo(ctx, nodeOne, nodeTwo)
		for _, c := range x.Clusters() {
			writes := books.requests(ctx, c).Writes().Where(func(r controlplane.Request) bool {
				// Ignore writes for the barrier, and those that report the lost and restored connection.
				told := r.Resource == "clusterregistrations/status" || r.Resource == "nodes/status" || r.Resource == "events"
				barrier := strings.HasPrefix(r.Name, "pushed-") || r.Resource == "pods" && r.Verb == "create"
				return !told && !barrier && !otherNamespace(s, r)
			})
			Expect(writes).To(BeEmpty(), "in %s:\n%s", c.Name(), writes)
		}
		quiet()
	}, SpecTimeout(storyTime))

	It("writes each field only with the controller that owns it", func(ctx SpecContext) {
		s := begin(ctx)
		Expect(x.Host.API.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings"}})).To(Succeed())
		s.service(ctx, "db")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne), sized("10m", "16Mi"), func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
			}})
		})
		s.running(ctx, "app", nodeOne)
		until[corev1.Pod](ctx, s, x.Host, "app", actuated("10m", "16Mi"))
		s.resize(ctx, x.Host, "app", "containers", "main", "20m", "32Mi")
		until[corev1.Pod](ctx, s, x.Host, "app", actuated("20m", "32Mi"))
		s.grow(ctx, "data", "2Gi")
		volume := s.bound(ctx, "data").Spec.VolumeName
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Status.Capacity",
			WithTransform(func(r corev1.ResourceList) string { return r.Storage().String() }, Equal("2Gi"))))

		member := x.Member(one)
		until[corev1.Service](ctx, s, member, "db", Not(BeNil()))
		for _, seen := range []struct {
			side string
			in   *harness.Cluster
			obj  client.Object
			name string
		}{
			{"root", x.Host, &corev1.PersistentVolumeClaim{}, "data"},
			{"root", x.Host, &corev1.Pod{}, "app"},
			{"root", x.Host, &corev1.PersistentVolume{}, volume},
			{"root", x.Host, &corev1.Node{}, nodeOne},
			{"root", x.Host, &storagev1.CSINode{}, nodeOne},
			{"root", x.Host, &v1alpha1.ClusterRegistration{}, one},
			{"leaf", member, &corev1.PersistentVolumeClaim{}, "data"},
			{"leaf", member, &corev1.Pod{}, "app"},
			{"leaf", member, &corev1.PersistentVolume{}, volume},
			{"leaf", member, &corev1.Namespace{}, s.namespace},
			{"leaf", member, &corev1.Service{}, "db"},
			{"leaf", member, &corev1.ConfigMap{}, s.copies(ctx).NameOfCopy("settings")},
		} {
			Expect(suite.Get(ctx, seen.in, s.namespace, seen.name, seen.obj)).To(Succeed())
			kind := fmt.Sprintf("%s %T", seen.side, seen.obj)
			kind = strings.NewReplacer("*v1.", "", "*v1alpha1.", "").Replace(kind)
			Expect(strangers(kind, seen.obj)).To(BeEmpty(), kind)
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: nodeOne}}
		Expect(x.Host.API.Get(ctx, client.ObjectKeyFromObject(lease), lease)).To(Succeed())
		Expect(strangers("root Lease", lease)).To(BeEmpty())
	}, SpecTimeout(storyTime))
})

// budgeted is the number of volumes for which requests are compared with a budget.
const budgeted = 6

// budget is the number of requests that the manager may make for each volume.
type budget = harness.Budget

// spent returns the manager's requests to the host and a member for a story's volumes.
func (a account) spent(ctx context.Context, s *story, member *harness.Cluster) map[string]int {
	GinkgoHelper()
	counts, err := x.Spent(ctx, a.Account, s.namespace, member)
	Expect(err).NotTo(HaveOccurred())
	return counts
}

// typical returns the requests that the manager makes for most of a story's volumes, claims and Pods.
func (a account) typical(ctx context.Context, s *story, member *harness.Cluster) map[string]int {
	GinkgoHelper()
	counts, err := x.Typical(ctx, a.Account, s.namespace, member, budgeted)
	Expect(err).NotTo(HaveOccurred())
	return counts
}

// proofs returns the number of reads of the fence in a member, each of which proves that the member was not
// restored.
func (a account) proofs(ctx context.Context, member *harness.Cluster) int {
	GinkgoHelper()
	all, err := member.Audit().Since(ctx, a.Account[member.Name()])
	Expect(err).NotTo(HaveOccurred())
	return len(all.By(x.User(member)).Where(func(r controlplane.Request) bool { return r.Verb == "get" && r.Resource == "leases" }))
}

// removal is the budget for the deletion of a volume and its Pod.
var removal = budget{
	"host get persistentvolumes": 2, "host get persistentvolumeclaims": 1, "host patch persistentvolumes": 1, "host delete persistentvolumes": 1,
	"member get persistentvolumes": 2, "member get persistentvolumeclaims": 1, "member patch persistentvolumes": 1, "member delete persistentvolumeclaims": 1,
	"member delete pods": 1, "member get pods": 1, "host delete pods": 1, "host patch pods/status": 1,
	"host list persistentvolumeclaims": 2, // nobody may need the data
	"member get leases":                1, // the member was not restored
}

var _ = Describe("The cost of a volume", func() {
	DescribeTable("is within its budget of requests", func(ctx SpecContext, class string, copies bool, create, remove budget) {
		s := begin(ctx)
		s.barrier(ctx, nodeOne) // creates the namespace in the member
		var options []claimOption
		if copies {
			s.golden(ctx, nodeOne)
			options = append(options, from("golden"))
		}
		attempt := 0
		// spend returns false if the manager lost its Link to the member, which was too slow, so that the
		// controllers started again and made more requests.
		spend := func(what string, allowed budget, do func(name string), done func(name string)) bool {
			GinkgoHelper()
			s.probed(ctx, 1)
			books := opened(ctx)
			for _, step := range []func(string){do, done} {
				for i := range budgeted {
					step(fmt.Sprintf("data-%d-%d", attempt, i))
				}
			}
			s.probed(ctx, 1)
			spent, typical := books.spent(ctx, s, x.Member(one)), books.typical(ctx, s, x.Member(one))
			spent["member get leases"] = books.proofs(ctx, x.Member(one))
			AddReportEntry(what, fmt.Sprintf("for %d volumes: %v; for most of them at least: %v", budgeted, spent, typical))
			if harness.Restarted(spent) {
				return false
			}
			Expect(allowed.Exceeded(spent, typical, budgeted)).To(BeEmpty(), "%s: %v", what, spent)
			return true
		}
		volumes := map[string]string{}
		for measured := false; !measured; attempt++ {
			Expect(attempt).To(BeNumerically("<", 3), "the manager lost its Link to the member each time")
			created := spend("from apply to Running", create, func(name string) {
				s.claim(ctx, name, append(options, ofClass(class))...)
				s.pod(ctx, name, using(name), on(nodeOne))
			}, func(name string) {
				s.running(ctx, name, nodeOne)
				volumes[name] = s.bound(ctx, name).Spec.VolumeName
			})
			removed := spend("from deletion until all objects are gone", remove, func(name string) {
				s.deletePod(ctx, name)
				s.deleteClaim(ctx, name)
			}, func(name string) {
				gone[corev1.Pod](ctx, s, x.Host, name)
				gone[corev1.PersistentVolume](ctx, s, x.Host, volumes[name])
				Eventually(ctx, func() ([]string, error) {
					book, err := x.Member(one).Ledger()
					if err != nil {
						return nil, err
					}
					return book.ForClaim(s.namespace, name).LiveIDs(), nil
				}).Should(BeEmpty())
			})
			measured = created && removed
		}
	},
		Entry("mirrored", suite.Slow, suite.Core, classMirror, false, budget{
			"host patch persistentvolumeclaims": 1, "host get persistentvolumeclaims": 1, "member create persistentvolumeclaims": 1,
			"member patch persistentvolumes": 1, "host create persistentvolumes": 1, "host create events": 1,
			"host get pods": 1, "member create pods": 1, "host patch pods/status": 2,
		}, removal, SpecTimeout(storyTime)),
		Entry("cloned", suite.Slow, classMirror, true, budget{
			"host patch persistentvolumeclaims": 3, "host get persistentvolumeclaims": 2, "host get persistentvolumes": 1, "host create persistentvolumes": 1,
			"member create persistentvolumeclaims": 2, "member get persistentvolumeclaims": 1, "member get persistentvolumes": 1, "member patch persistentvolumes": 1,
			"host create events": 1, "host get pods": 1, "member create pods": 1, "host patch pods/status": 2,
		}, removal, SpecTimeout(storyTime)),
		Entry("promised", suite.Slow, classPromise, false, budget{
			"host create persistentvolumes": 1, "host patch persistentvolumes": 2, "host get persistentvolumes": 2,
			"host patch persistentvolumeclaims": 1, "host patch persistentvolumeclaims/status": 2, "host get persistentvolumeclaims": 2,
			"member create persistentvolumeclaims": 1, "member get persistentvolumes": 1, "member patch persistentvolumes": 1,
			"host get pods": 1, "member create pods": 1, "host patch pods/status": 2, "host create events": 2,
		}, removal, SpecTimeout(storyTime)),
	)
})

// otherNamespace matches writes to other namespaces, because Xylem creates the barrier's namespace,
// and later deletes unused namespaces of earlier stories.
func otherNamespace(s *story, r controlplane.Request) bool {
	return r.Resource == "namespaces" && r.Name != s.namespace
}

// writers lists the fields that a controller may own, by side and kind. A field is a path in
// managedFields without the prefixes f: and k:.
var writers = map[string]map[string]string{
	"root PersistentVolumeClaim": {
		"xylem-root-pvc":             `^metadata/annotations/(xylem\.io/(placed-in|reported-by)|volume\.kubernetes\.io/selected-node)$|^status/conditions/type=xylem\.io/Placed`,
		"xylem-promise":              `^status/conditions/type=xylem\.io/Promise`,
		"xylem-leaf-pvc":             `^status/(capacity|allocatedResources|allocatedResourceStatuses|currentVolumeAttributesClassName|modifyVolumeStatus)|^status/conditions/type=(Resizing|FileSystemResizePending|ControllerResizeError|NodeResizeError|ModifyVolumeError|ModifyingVolume)`,
		"xylem-leaf-attachment":      `^status/conditions/type=xylem\.io/Attached`,
		"xylem-leaf-pod":             `^metadata/annotations/xylem\.io/tried$`,
		"xylem-host-claim":           `^metadata/annotations/volume\.kubernetes\.io/selected-node$`,
		"xylem-source":               `^metadata/annotations/(xylem\.io/(source|steered-to)|volume\.kubernetes\.io/selected-node)$`,
		"xylem-cluster-registration": `^metadata/annotations/(xylem\.io/placed-in|volume\.kubernetes\.io/selected-node)$`,
	},
	"root Pod": {
		"xylem-away-pod":    `^status/conditions/type=Ready`,
		"xylem-waiting-pod": `^status/conditions/type=xylem\.io/Placeable`,
		"xylem-root-config": `^status/conditions/type=xylem\.io/APIAccess`,
		"xylem-root-pod":    `^metadata/annotations/xylem\.io/(reported-by|leaf-uid)$|^status/conditions/type=xylem\.io/Pushed`,
		"xylem-leaf-pod":    `^status/(phase|message|reason|hostIP|hostIPs|podIP|podIPs|startTime|qosClass|observedGeneration|resize|initContainerStatuses|containerStatuses|ephemeralContainerStatuses|extendedResourceClaimStatus|allocatedResources|resources)|^status/conditions/type=(PodReadyToStartContainers|Initialized|ContainersReady|Ready|DisruptionTarget|PodResizePending|PodResizeInProgress)`,
	},
	"root PersistentVolume": {
		"xylem-leaf-pv":              `^metadata/(labels|annotations|finalizers)|^spec/`,
		"xylem-root-pv":              `^metadata/finalizers`,
		"xylem-cluster-registration": `^metadata/(finalizers|annotations/xylem\.io/cluster-gone)`,
		"xylem-root-pod":             `^metadata/finalizers`,
		"xylem-shared-pv":            `^metadata/finalizers`,
	},
	"root Node": {
		"xylem-virtual-node": `^metadata/(labels|annotations)|^spec/(taints|unschedulable|podCIDR|podCIDRs|providerID)|^status/`,
		"xylem-csi-node":     `^status/conditions/type=xylem\.io/CSINode`,
	},
	"root CSINode":             {"xylem-csi-node": `^metadata/(labels|ownerReferences)|^spec/drivers`},
	"root StorageClass":        {"xylem-reflected-class": `^metadata/labels|^provisioner|^reclaimPolicy|^volumeBindingMode|^allowVolumeExpansion|^allowedTopologies`},
	"root Lease":               {"xylem-heartbeat": `^metadata/|^spec/`},
	"root ClusterRegistration": {"xylem-cluster-registration": `^metadata/finalizers|^status/`},
	"leaf PersistentVolumeClaim": {
		"xylem-root-pvc": `^metadata/(labels|annotations)|^spec/`,
	},
	"copy": {
		"xylem-root-pod":  `^metadata/(labels|annotations)|^spec/`,
		"xylem-shared-pv": `^spec/persistentVolumeReclaimPolicy$`,
	},
	"promise": {
		"xylem-promise":  `^metadata/(annotations|finalizers)|^spec/`,
		"xylem-root-pvc": `^metadata/(labels/xylem.io/cluster|annotations/xylem.io/consumer)`,
		"xylem-leaf-pv":  `^metadata/(labels/xylem.io/cluster$|annotations/xylem.io/(volume|leaf-uid|driver|handle)|finalizers)|^spec/(capacity|nodeAffinity|persistentVolumeReclaimPolicy)`,
		"xylem-root-pv":  `^metadata/(annotations/xylem.io/(unused-since|releasing)|finalizers)|^spec/capacity`,
	},
	"leaf Pod": {"xylem-root-pod": `^metadata/(labels|annotations|generateName)|^spec/`},
	"leaf PersistentVolume": {
		"xylem-leaf-pv": `^metadata/(labels|annotations)|^spec/(persistentVolumeReclaimPolicy|claimRef)`,
		"xylem-root-pv": `^spec/persistentVolumeReclaimPolicy`,
	},
	"leaf PodDisruptionBudget": {"xylem-leaf-budget": `^metadata/(labels|annotations)|^spec/`},
	"leaf Namespace":           {"xylem-leaf-namespace": `^metadata/(labels|annotations)`},
	"leaf ConfigMap":           {"xylem-root-config": `^metadata/(labels|annotations)|^data|^binaryData|^immutable`},
	"leaf Service":             {"xylem-root-service": `^metadata/(labels|annotations)|^spec/`},
}

// strangers returns the fields that one of Xylem's controllers owns but should not own, and the
// fields that two of its controllers own.
func strangers(kind string, obj client.Object) []string {
	GinkgoHelper()
	Expect(writers).To(HaveKey(kind))
	var found []string
	owners := map[string]string{}
	some := false
	for _, entry := range writes(obj) {
		some = true
		allowed, known := writers[kind][entry.Manager]
		var fields map[string]any
		Expect(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields)).To(Succeed())
		for _, path := range paths("", fields) {
			if !known || !regexp.MustCompile(allowed).MatchString(path) {
				found = append(found, fmt.Sprintf("%s owns %s", entry.Manager, path))
			}
			if other, taken := owners[path]; taken && other != entry.Manager {
				found = append(found, fmt.Sprintf("%s and %s own %s", other, entry.Manager, path))
			}
			owners[path] = entry.Manager
		}
	}
	Expect(some).To(BeTrue(), "%s %s: Xylem owns no field", kind, obj.GetName())
	slices.Sort(found)
	return found
}

// writes returns the fields that Xylem has written to an object. Comparing resource versions would
// not show Xylem's writes, because Kubernetes may write to the object at any time. For example,
// since 1.37, the PVC protection controller records on a Bound claim that no Pod uses it.
func writes(obj client.Object) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(obj.GetManagedFields()), func(entry metav1.ManagedFieldsEntry) bool {
		return !strings.HasPrefix(entry.Manager, "xylem")
	})
}

// itemKey matches the key of a list item, such as k:{"type":"Ready"}.
var itemKey = regexp.MustCompile(`^k:\{"([a-zA-Z]+)":"?([^"}]*)"?.*\}$`)

// paths returns the paths of all fields in managedFields.
func paths(prefix string, fields map[string]any) []string {
	var all []string
	for key, value := range fields {
		if key == "." {
			continue
		}
		name := strings.TrimPrefix(key, "f:")
		if m := itemKey.FindStringSubmatch(key); m != nil {
			name = m[1] + "=" + m[2]
		}
		if prefix != "" {
			name = prefix + "/" + name
		}
		below, ok := value.(map[string]any)
		if !ok || len(below) == 0 || len(below) == 1 && below["."] != nil {
			all = append(all, name)
			continue
		}
		all = append(all, paths(name, below)...)
	}
	return all
}

// pushedTo waits until a new Pod runs on each of the nodes.
func (s *story) pushedTo(ctx context.Context, nodes ...string) {
	GinkgoHelper()
	for _, node := range nodes {
		s.running(ctx, s.pushed(ctx, node), node)
	}
}

// probed waits until each member's fence has been renewed the given number of times.
func (s *story) probed(ctx context.Context, times int) {
	GinkgoHelper()
	for _, m := range x.Members() {
		var lease coordinationv1.Lease
		key := client.ObjectKey{Namespace: v1alpha1.DefaultNamespace, Name: idOf(ctx, x.Host)}
		for range times {
			Expect(m.API.Get(ctx, key, &lease)).To(Succeed())
			before := lease.ResourceVersion
			Eventually(ctx, func(ctx context.Context) (string, error) {
				err := m.API.Get(ctx, key, &lease)
				return lease.ResourceVersion, err
			}).ShouldNot(Equal(before))
		}
	}
}
