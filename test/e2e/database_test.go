package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/e2e/fleet"
)

// These stories run etcd as users run a database: a StatefulSet with three replicas, a headless Service, a budget and a disk for
// each replica.

// severalNodes says whether a member can have several virtual nodes. With only one, the host's scheduler rejects a second
// replica in the member if the replicas' anti-affinity is required. Then the stories separate them with a spread constraint,
// which counts one node in the host, and the member's nodes in the member.
const severalNodes = false

const (
	replicas = 3
	// quorum is the number of replicas without which etcd rejects writes. The budget requires as many.
	quorum = replicas/2 + 1
)

// database is an etcd cluster. The names of the namespace's objects are "etcd".
type database struct {
	namespace string
	// nodes is the label of the virtual nodes on which the replicas run.
	nodes string
}

// manifest returns the database's objects. They contain nothing that is specific to members, except the node selector and
// the toleration.
func (d database) manifest() string {
	apart := `topologySpreadConstraints:
      - topologyKey: kubernetes.io/hostname
        maxSkew: 1
        whenUnsatisfiable: DoNotSchedule
        nodeTaintsPolicy: Honor
        labelSelector: {matchLabels: {app: etcd}}`
	if severalNodes {
		apart = `affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector: {matchLabels: {app: etcd}}`
	}
	var peers []string
	for i := range replicas {
		peers = append(peers, fmt.Sprintf("etcd-%[1]d=http://etcd-%[1]d.etcd:2380", i))
	}
	return strings.NewReplacer("NAMESPACE", d.namespace, "REPLICAS", fmt.Sprint(replicas), "QUORUM", fmt.Sprint(quorum), "PEERS", strings.Join(peers, ","),
		"NODES", d.nodes, "APART", apart, "CLASS", fleet.Class, "IMAGE", fleet.DatabaseImage).Replace(`apiVersion: v1
kind: Service
metadata: {name: etcd, namespace: NAMESPACE}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {app: etcd}
  ports: [{name: peers, port: 2380}, {name: clients, port: 2379}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: etcd, namespace: NAMESPACE}
spec:
  minAvailable: QUORUM
  selector: {matchLabels: {app: etcd}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: etcd, namespace: NAMESPACE}
spec:
  serviceName: etcd
  replicas: REPLICAS
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: etcd}}
  template:
    metadata: {labels: {app: etcd}}
    spec:
      nodeSelector: {NODES}
      tolerations: [{key: kosmos.io/node, operator: Exists, effect: NoSchedule}]
      APART
      containers:
      - name: etcd
        image: IMAGE
        env: [{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        args:
        - --name=$(NAME)
        - --data-dir=/data/etcd
        - --initial-cluster=PEERS
        - --initial-advertise-peer-urls=http://$(NAME).etcd:2380
        - --advertise-client-urls=http://$(NAME).etcd:2379
        - --listen-peer-urls=http://0.0.0.0:2380
        - --listen-client-urls=http://0.0.0.0:2379
        readinessProbe: {httpGet: {path: /readyz, port: 2379}, periodSeconds: 1, timeoutSeconds: 5}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: CLASS
      resources: {requests: {storage: 256Mi}}
`)
}

// create creates the database, and waits until it accepts writes.
func (d database) create(ctx context.Context) {
	GinkgoHelper()
	makeNamespace(ctx, d.namespace)
	began := time.Now()
	apply(ctx, world.Host(), d.manifest())
	Eventually(func() error { return d.put(ctx, 0, "first", "written first") }).WithContext(ctx).Should(Succeed())
	AddReportEntry("from kubectl apply to the first write that a quorum acknowledged", time.Since(began).Round(100*time.Millisecond).String())
	d.running(ctx)
	AddReportEntry("from kubectl apply until all replicas were ready", time.Since(began).Round(100*time.Millisecond).String())
	Eventually(func() ([]string, error) { return d.members(ctx) }).WithContext(ctx).Should(ConsistOf("etcd-0", "etcd-1", "etcd-2"))
}

// running waits until all replicas are ready, and returns them.
func (d database) running(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	pods := make([]corev1.Pod, replicas)
	Eventually(func() error {
		for i := range pods {
			if err := world.Host().API.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: replicaName(i)}, &pods[i]); err != nil {
				return err
			}
			if !ready(pods[i]) || pods[i].DeletionTimestamp != nil {
				return fmt.Errorf("%s on %q is not ready: %+v", pods[i].Name, pods[i].Spec.NodeName, pods[i].Status.Conditions)
			}
		}
		return nil
	}).WithContext(ctx).Should(Succeed())
	return pods
}

func replicaName(i int) string { return fmt.Sprintf("etcd-%d", i) }

// leaves returns the leaf Pods of all replicas, and the members in which they run.
func (d database) leaves(ctx context.Context) (leaves []corev1.Pod, members []*fleet.Cluster) {
	GinkgoHelper()
	for _, root := range d.running(ctx) {
		var leaf corev1.Pod
		member := memberOf(&root)
		Expect(member.API.Get(ctx, client.ObjectKeyFromObject(&root), &leaf)).To(Succeed())
		leaves, members = append(leaves, leaf), append(members, member)
	}
	return leaves, members
}

// disks describes each replica's claim and volume in both clusters, and the directory of its data.
func (d database) disks(ctx context.Context) []string {
	GinkgoHelper()
	var list []string
	_, members := d.leaves(ctx)
	for i, member := range members {
		for _, c := range []*fleet.Cluster{world.Host(), member} {
			var claim corev1.PersistentVolumeClaim
			Expect(c.API.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: "data-" + replicaName(i)}, &claim)).To(Succeed())
			pv := volume(ctx, c, claim.Spec.VolumeName)
			line := fmt.Sprintf("%s: claim %s %s, volume %s %s", c.Name, claim.Name, claim.UID, pv.Name, pv.UID)
			if pv.Spec.HostPath != nil {
				line += " in " + pv.Spec.HostPath.Path
			}
			list = append(list, line)
		}
	}
	return list
}

// call sends a request to a replica's API.
func (d database) call(ctx context.Context, i int, path string, request, response any) error {
	var pod corev1.Pod
	if err := world.Host().API.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: replicaName(i)}, &pod); err != nil {
		return err
	}
	member := memberOn(pod.Spec.NodeName)
	if member == nil {
		return fmt.Errorf("%s is on node %q", pod.Name, pod.Spec.NodeName)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := member.Typed.CoreV1().RESTClient().Post().Namespace(d.namespace).Resource("pods").Name("http:"+pod.Name+":2379").SubResource("proxy").Suffix(path).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", pod.Name, path, err, answer)
	}
	return json.Unmarshal(answer, response)
}

// entry is a key with its value in etcd's API.
type entry struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value,omitempty"`
}

// put writes a key through a replica. It returns nil once a quorum has acknowledged it.
func (d database) put(ctx context.Context, i int, key, value string) error {
	return d.call(ctx, i, "v3/kv/put", entry{[]byte(key), []byte(value)}, &struct{}{})
}

// content returns all keys with their values, as a quorum has them.
func (d database) content(ctx context.Context, i int) (map[string]string, error) {
	var response struct {
		Pairs []entry `json:"kvs"`
	}
	everything := []byte{0}
	err := d.call(ctx, i, "v3/kv/range", map[string][]byte{"key": everything, "range_end": everything}, &response)
	content := map[string]string{}
	for _, pair := range response.Pairs {
		content[string(pair.Key)] = string(pair.Value)
	}
	return content, err
}

// members returns the names of the replicas that have joined.
func (d database) members(ctx context.Context) ([]string, error) {
	var response struct {
		Members []struct{ Name string } `json:"members"`
	}
	err := d.call(ctx, 0, "v3/cluster/member/list", struct{}{}, &response)
	var names []string
	for _, m := range response.Members {
		names = append(names, m.Name)
	}
	return names, err
}

// writes is what a background writer did.
type writes struct {
	acknowledged map[string]string
	failed       int
}

// keepWriting writes keys through the replicas in turn until stop is called, which returns what was written.
func (d database) keepWriting(ctx context.Context) (stop func() writes) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan writes, 1)
	go func() {
		all := writes{acknowledged: map[string]string{}}
		ticker := time.NewTicker(poll / 10)
		defer ticker.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			<-ticker.C
			key, value := fmt.Sprintf("n-%06d", n), fmt.Sprintf("through %s", replicaName(n%replicas))
			attempt, end := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
			if d.put(attempt, n%replicas, key, value) == nil {
				all.acknowledged[key] = value
			} else {
				all.failed++
			}
			end()
		}
		done <- all
	}()
	return func() writes {
		cancel()
		return <-done
	}
}

// writeTimeout is the timeout of one of keepWriting's writes.
const writeTimeout = 5 * time.Second

// counts are the numbers of healthy replicas that a cluster's API server showed, after each change of their Pods.
type counts struct {
	changes, least int
	err            error
}

// count counts the healthy replicas in a cluster after each change, until stop is called. Healthy means the same as for a
// budget: ready, and not being deleted.
func (d database) count(ctx context.Context, c *fleet.Cluster) (stop func() counts) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	selection := []client.ListOption{client.InNamespace(d.namespace), client.MatchingLabels{"app": "etcd"}}
	var list corev1.PodList
	Expect(c.API.List(ctx, &list, selection...)).To(Succeed())
	healthy := map[types.UID]bool{}
	for _, p := range list.Items {
		healthy[p.UID] = ready(p) && p.DeletionTimestamp == nil
	}
	from := &client.ListOptions{}
	from.ApplyOptions(selection)
	from.Raw = &metav1.ListOptions{ResourceVersion: list.ResourceVersion}
	watched, err := c.API.Watch(ctx, &corev1.PodList{}, from)
	Expect(err).NotTo(HaveOccurred())
	done := make(chan counts, 1)
	go func() {
		all := counts{least: healthyOf(healthy)}
		for event := range watched.ResultChan() {
			p, is := event.Object.(*corev1.Pod)
			if !is {
				all.err = fmt.Errorf("watch the Pods in %s: %v", c.Name, event.Object)
				break
			}
			healthy[p.UID] = event.Type != watch.Deleted && ready(*p) && p.DeletionTimestamp == nil
			all.changes, all.least = all.changes+1, min(all.least, healthyOf(healthy))
		}
		if ctx.Err() != nil {
			all.err = nil // stop ended the watch
		} else if all.err == nil {
			all.err = fmt.Errorf("the watch of the Pods in %s ended", c.Name)
		}
		done <- all
	}()
	return func() counts {
		cancel()
		watched.Stop()
		return <-done
	}
}

func healthyOf(pods map[types.UID]bool) (n int) {
	for _, healthy := range pods {
		if healthy {
			n++
		}
	}
	return n
}

// drainsDatabase is the story of a database in one member whose nodes are drained.
func drainsDatabase(ctx SpecContext) {
	if onKind == nil {
		Skip("Pods do not run on this provider: test/integration/stories covers the objects")
	}
	d := database{namespace: "database", nodes: v1alpha1.LabelCluster + ": " + fleet.First}
	member := world.Member(fleet.First)
	if severalNodes {
		run(ctx, world.Host(), "kubectl", "patch", "clusterregistration", fleet.First, "--type=merge", "--patch", `{"spec":{"nodes":[{"forEach":{"node":true}}]}}`)
		DeferCleanup(func(ctx SpecContext) {
			run(ctx, world.Host(), "kubectl", "patch", "clusterregistration", fleet.First, "--type=merge", "--patch", `{"spec":{"nodes":null}}`)
		}, NodeTimeout(settle))
	}
	By("the replicas find each other by the Service's names, and form a quorum on three nodes of the member")
	d.create(ctx)
	before, _ := d.leaves(ctx)
	var nodes []string
	for _, leaf := range before {
		Expect(nodes).NotTo(ContainElement(leaf.Spec.NodeName), "replicas must not share a node")
		nodes = append(nodes, leaf.Spec.NodeName)
	}
	disks := d.disks(ctx)
	for _, c := range []*fleet.Cluster{world.Host(), member} {
		run(ctx, c, "kubectl", "-n", d.namespace, "get", "pods,pvc,poddisruptionbudgets,services", "-o", "wide")
	}

	By("the member's admin drains one node after another, and makes a node schedulable again only when the next drain waits for it")
	inMember, inHost, written := d.count(ctx, member), d.count(ctx, world.Host()), d.keepWriting(ctx)
	DeferCleanup(func(ctx SpecContext) { run(ctx, member, "kubectl", append([]string{"uncordon"}, nodes...)...) }, NodeTimeout(settle))
	refused := 0
	for i, node := range nodes {
		drain := strings.Fields(strings.NewReplacer("--context cluster39", "", "NODE", node).Replace(documented("charts/xylem-member/README.md", "drain NODE")))
		out := background(ctx, member, drain[0], drain[1:]...)
		if i > 0 {
			Eventually(out).WithContext(ctx).Should(gbytes.Say("would violate the pod's disruption budget"))
			run(ctx, member, "kubectl", "uncordon", nodes[i-1])
		}
		Eventually(func() string { return string(out.Contents()) }).WithContext(ctx).Should(ContainSubstring("node/" + node + " drained"))
		refused += strings.Count(string(out.Contents()), "would violate the pod's disruption budget")
	}
	run(ctx, member, "kubectl", "uncordon", nodes[replicas-1])

	By("all replicas are new Pods on the volumes of the old ones")
	Eventually(func(g Gomega) {
		for i, leaf := range before {
			var after corev1.Pod
			g.Expect(member.API.Get(ctx, client.ObjectKeyFromObject(&leaf), &after)).To(Succeed())
			g.Expect(after.UID).NotTo(Equal(leaf.UID))
			g.Expect(after.Spec.NodeName).To(Equal(nodes[i]))
			g.Expect(ready(after)).To(BeTrue())
		}
	}).WithContext(ctx).Should(Succeed())
	d.running(ctx)
	Expect(d.disks(ctx)).To(Equal(disks))

	By("the budget held at every moment, and no acknowledged write is lost")
	all := written()
	for _, c := range []struct {
		name string
		counts
	}{{"member", inMember()}, {"host", inHost()}} {
		Expect(c.err).NotTo(HaveOccurred())
		AddReportEntry("healthy replicas that the "+c.name+" showed during the drain", fmt.Sprintf("at least %d after each of %d changes", c.least, c.changes))
		Expect(c.least).To(BeNumerically(">=", quorum))
		Expect(c.changes).To(BeNumerically(">", 0))
	}
	AddReportEntry("evictions during the drain", fmt.Sprintf("%d rejected because of the budget, %d successful", refused, replicas))
	AddReportEntry("writes during the drain", fmt.Sprintf("%d acknowledged, %d failed", len(all.acknowledged), all.failed))
	d.holds(ctx, all)

	By("all replicas are stopped at once, and start again on their volumes")
	scale(ctx, d.namespace, "statefulset", "etcd", 0)
	Eventually(func() (int, error) {
		var list corev1.PodList
		err := member.API.List(ctx, &list, client.InNamespace(d.namespace))
		return len(list.Items), err
	}).WithContext(ctx).Should(BeZero())
	scale(ctx, d.namespace, "statefulset", "etcd", replicas)
	Expect(d.disks(ctx)).To(Equal(disks))
	d.holds(ctx, all)
	removeNamespace(ctx, d.namespace)
	emptied(ctx, member, d.namespace)
}

// holds expects that each replica has all acknowledged writes.
func (d database) holds(ctx context.Context, all writes) {
	GinkgoHelper()
	Expect(all.acknowledged).NotTo(BeEmpty())
	for i := range replicas {
		var content map[string]string
		Eventually(func() (err error) {
			content, err = d.content(ctx, i)
			return err
		}).WithContext(ctx).Should(Succeed())
		Expect(content).To(HaveKeyWithValue("first", "written first"))
		for key, value := range all.acknowledged {
			Expect(content).To(HaveKeyWithValue(key, value), "through %s", replicaName(i))
		}
	}
}

// spansMembers is the story of a database whose replicas run in two members.
func spansMembers(ctx SpecContext) {
	if onKind == nil {
		Skip("Pods have no network on this provider: test/integration/stories covers the objects")
	}
	Expect(onKind.Connect(ctx)).To(Succeed())
	for name, other := range map[string]string{fleet.First: fleet.Second, fleet.Second: fleet.First} {
		run(ctx, world.Host(), "kubectl", "patch", "clusterregistration", name, "--type=merge", "--patch",
			fmt.Sprintf(`{"spec":{"services":{"reachable":[%q]}}}`, onKind.PodSubnet(other)))
	}
	d := database{namespace: "spanning", nodes: v1alpha1.LabelVirtualNode + `: "true"`}
	d.create(ctx)
	leaves, members := d.leaves(ctx)
	Expect(members).To(ContainElements(world.Members()), "replicas must run in both members")
	for _, c := range everywhere() {
		run(ctx, c, "kubectl", "-n", d.namespace, "get", "pods,endpointslices", "-o", "wide")
	}

	By("a replica is deleted, and returns to its member and volume with another IP address")
	disks, written := d.disks(ctx), d.keepWriting(ctx)
	alone := slices.IndexFunc(members, func(m *fleet.Cluster) bool { return m.Name == fleet.Second })
	run(ctx, world.Host(), "kubectl", "-n", d.namespace, "delete", "pod", replicaName(alone))
	again, _ := d.leaves(ctx)
	Expect(again[alone].UID).NotTo(Equal(leaves[alone].UID))
	Expect(d.disks(ctx)).To(Equal(disks))
	all := written()
	AddReportEntry("writes while a replica was replaced", fmt.Sprintf("%d acknowledged, %d failed", len(all.acknowledged), all.failed))
	d.holds(ctx, all)
	for _, name := range []string{fleet.First, fleet.Second} {
		run(ctx, world.Host(), "kubectl", "patch", "clusterregistration", name, "--type=json", "--patch", `[{"op":"remove","path":"/spec/services/reachable"}]`)
	}
	removeNamespace(ctx, d.namespace)
	for _, m := range world.Members() {
		emptied(ctx, m, d.namespace)
	}
}
