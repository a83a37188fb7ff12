package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	// nativeName is the cluster without Xylem.
	nativeName = "native"
	// classMirror and classPromise are the host's classes for the members' classMember.
	classMirror  = "bench-mirror"
	classPromise = "bench-promise"
	// classDriver is the host's class for the yardstick driver's claims.
	classDriver = "bench-driver"
	classMember = controlplane.ClassHostpath
	// driverName is the provisioner of classDriver, and of volumes without a real provisioner.
	driverName = "bench.invalid"
	// stall is how long a wait may make no progress before it fails.
	stall = 2 * time.Minute
	// look is the interval between checks of a condition, and tell the interval between progress
	// messages.
	look = 50 * time.Millisecond
	tell = 5 * time.Second
	// sharedSpace is the namespace of all claims and Pods that Xylem pushes.
	sharedSpace = "bench"
	// heldMark is part of the names of the objects that keep the namespace alive. Their times are
	// not measured.
	heldMark = "-held-"
	// hostNodes is the number of nodes for the Pods of the yardstick driver.
	hostNodes = 2
)

// managerArgs are the manager's arguments in the Deployment in config/manager.
var managerArgs = []string{"--leader-elect"}

// rig has a host, its members, a cluster without Xylem, and watches on all of them.
type rig struct {
	b       *bench
	x       *harness.Xylem
	members int
	host    *view
	leaves  views
	native  *view // nil if the rig lacks that cluster
	spaces  int
}

// roomy returns the capacity of nodes that accept any number of Pods.
func roomy() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2000"), corev1.ResourceMemory: resource.MustParse("8Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("8Ti"), corev1.ResourcePods: resource.MustParse("20000"),
	}
}

func memberName(i int) string { return fmt.Sprintf("member-%02d", i+1) }
func nodeName(i int) string   { return v1alpha1.DefaultNodeNamePrefix + memberName(i) }

// clusters returns a rig with the given number of members. It reuses the current rig if possible.
func (b *bench) clusters(ctx context.Context, members int) (*rig, error) {
	if b.now != nil && b.now.members == members {
		return b.now, b.now.restart(ctx)
	}
	if err := b.close(ctx); err != nil {
		return nil, err
	}
	cluster := func(name string) controlplane.ClusterOptions {
		return controlplane.ClusterOptions{Name: name, NodeCapacity: roomy(), KubeAPIQPS: b.qps, KubeAPIBurst: b.qps}
	}
	host := cluster("host")
	host.Nodes = hostNodes
	all := []controlplane.ClusterOptions{cluster(nativeName)}
	for i := range members {
		all = append(all, cluster(memberName(i)))
	}
	b.say("starting a host, %d members and one cluster without Xylem", members)
	x, err := harness.Start(ctx, b.harness(host, all))
	if err != nil {
		return nil, err
	}
	r := &rig{b: b, x: x, members: members}
	b.now = r
	return r, r.prepare(ctx)
}

// harness returns the options that all rigs share. The manager reaches members directly, because
// a proxy runs in this program and costs CPU time. Only the member to black-hole has a proxy.
func (b *bench) harness(host controlplane.ClusterOptions, members []controlplane.ClusterOptions) harness.Options {
	return harness.Options{
		Host: host, Members: members, Unregistered: true, Alone: []string{nativeName}, ManagerArgs: managerArgs,
		FenceDuration: harness.ShippedFence, ProbeInterval: harness.ShippedProbe,
		Front: func(c *controlplane.Cluster, kubeconfig []byte) ([]byte, error) {
			if c.Name() == b.proxied {
				return kubeconfig, nil
			}
			return bytes.ReplaceAll(kubeconfig, []byte(c.Server(controlplane.ViaProxy)), []byte(c.Server(controlplane.Direct))), nil
		},
	}
}

func (r *rig) prepare(ctx context.Context) (err error) {
	if r.host, err = watch(ctx, r.x.Fleet.Host); err != nil {
		return err
	}
	if r.native, err = watch(ctx, r.x.Fleet.Member(nativeName)); err != nil {
		return err
	}
	for i := range r.members {
		v, err := watch(ctx, r.x.Fleet.Member(memberName(i)))
		if err != nil {
			return err
		}
		r.leaves = append(r.leaves, v)
	}
	if err := r.classes(ctx); err != nil {
		return err
	}
	if err := r.register(ctx); err != nil {
		return err
	}
	if err := r.makeSpace(ctx, sharedSpace, r.host); err != nil {
		return err
	}
	if err := r.hold(ctx); err != nil {
		return err
	}
	return r.settle(ctx)
}

// classes creates the host's StorageClasses: one for mirror mode, one for promise mode, and one
// for the yardsticks.
func (r *rig) classes(ctx context.Context) error {
	// Like Xylem's own driver, it does not attach volumes.
	driver := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: driverName},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)},
	}
	nobodys := harness.HostClass(classDriver, nil)
	nobodys.Provisioner, nobodys.Parameters = driverName, nil
	return r.x.Host.Create(ctx, driver, nobodys,
		harness.HostClass(classMirror, map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningMirror}),
		harness.HostClass(classPromise, map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise}))
}

// register registers all members.
func (r *rig) register(ctx context.Context) error {
	return r.inMembers(ctx, func(ctx context.Context, i int, _ *controlplane.Cluster) error {
		return r.x.Register(ctx, memberName(i), memberName(i))
	})
}

// inMembers calls do for all members in parallel.
func (r *rig) inMembers(ctx context.Context, do func(context.Context, int, *controlplane.Cluster) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range r.members {
		group.Go(func() error { return do(ctx, i, r.x.Fleet.Member(memberName(i))) })
	}
	return group.Wait()
}

func (r *rig) stop(ctx context.Context) error {
	for _, v := range append(views{r.host, r.native}, r.leaves...) {
		if v != nil {
			v.end()
		}
	}
	return r.x.Stop(ctx)
}

// space creates a new namespace.
func (r *rig) space(ctx context.Context, name string, in ...*view) (string, error) {
	r.spaces++
	name = fmt.Sprintf("%s-%d", name, r.spaces)
	return name, r.makeSpace(ctx, name, in...)
}

func (r *rig) makeSpace(ctx context.Context, name string, in ...*view) error {
	for _, v := range in {
		if _, err := v.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create namespace %s in %s: %w", name, v.name, err)
		}
		// Pods need the namespace's service account.
		if err := harness.Await(ctx, "namespace "+name, func(ctx context.Context) error {
			_, err := v.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// hold creates a claim with a Pod in each member, and waits until the Pods run. Otherwise, Xylem
// would delete the members' namespaces half a minute after their last object is gone.
func (r *rig) hold(ctx context.Context) error {
	core := r.host.client.CoreV1()
	return r.inMembers(ctx, func(ctx context.Context, i int, member *controlplane.Cluster) error {
		b := batch{namespace: sharedSpace, class: classMirror, nodes: []string{nodeName(i)}}
		claim, pod := b.claim(i), b.pod(i)
		claim.Name, pod.Name = "claim"+heldMark+member.Name(), "pod"+heldMark+member.Name()
		pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = claim.Name
		// While the manager does not run, the node is not Ready. The Pod must tolerate that.
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		if _, err := core.PersistentVolumeClaims(b.namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create the claim that keeps the namespace in %s: %w", member.Name(), err)
		}
		if _, err := core.Pods(b.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create the Pod that keeps the namespace in %s: %w", member.Name(), err)
		}
		if err := harness.Await(ctx, "Pod "+pod.Name, func(ctx context.Context) error {
			pod, err := core.Pods(b.namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			if err == nil && pod.Status.Phase != corev1.PodRunning {
				err = fmt.Errorf("the Pod is %s", pod.Status.Phase)
			}
			return err
		}); err != nil {
			return fmt.Errorf("%w\n%s", err, r.x.Manager.Log())
		}
		return nil
	})
}

// counted waits until the manager has checked all members for orphans, and the registrations
// report the given number of bound volumes and no problems. This proves that the manager
// recognizes the volumes as its own. The registrations are updated at intervals.
func (r *rig) counted(ctx context.Context, volumes int) error {
	var looked time.Time
	var lacking error
	done := 0
	err := r.await(ctx, "members checked for orphans", r.members+1, func() int {
		if time.Since(looked) < r.b.tick() {
			return done
		}
		looked = time.Now()
		if done, lacking = r.accounted(ctx, volumes); lacking == nil {
			done++
		}
		return done
	})
	return errors.Join(err, lacking)
}

// accounted returns how many members the manager has checked for orphans. The error describes what
// is missing until it has checked all and the registrations report the given number of volumes.
func (r *rig) accounted(ctx context.Context, volumes int) (int, error) {
	m, err := r.metrics(ctx)
	if err != nil {
		return 0, err
	}
	members := int(m[seriesOf+"xylem_orphaned_volumes"])
	if members < r.members {
		return members, fmt.Errorf("%d of %d members are checked for orphans", members, r.members)
	}
	counts, err := r.x.Counts(ctx)
	if err == nil && (int(counts.Bound) != volumes || counts.Pending+counts.Deleting+counts.Orphaned > 0) {
		err = fmt.Errorf("the registrations report %+v, want %d bound", counts, volumes)
	}
	return members, err
}

// running returns how many claims of a namespace are bound in the host, with Pods that run in host and
// members.
func (r *rig) running(namespace string) int {
	return min(r.host.count(running, namespace), r.host.count(bound, namespace), r.leaves.count(running, namespace))
}

// gone returns how many claims of a namespace, with their Pods and volumes, have been deleted in all
// clusters.
func (r *rig) gone(namespace string) int {
	n := math.MaxInt
	for _, s := range []stage{podGone, claimGone, volumeGone} {
		n = min(n, r.host.count(s, namespace), r.leaves.count(s, namespace))
	}
	return n
}

func (r *rig) forget(namespace string) {
	for _, v := range append(views{r.host, r.native}, r.leaves...) {
		v.forget(namespace)
	}
}

// errStalled reports that a wait made no progress for too long.
var errStalled = errors.New("no progress for " + stall.String())

// await waits until count returns all, and prints progress.
func (r *rig) await(ctx context.Context, what string, all int, count func() int) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	last, changed, told := -1, time.Now(), time.Now()
	for {
		n := count()
		if n >= all {
			return nil
		}
		if n != last {
			last, changed = n, time.Now()
		}
		if time.Since(told) > tell {
			told = time.Now()
			r.b.say("   %s: %d of %d", what, n, all)
		}
		if time.Since(changed) > stall {
			return fmt.Errorf("%s: %d of %d: %w\n%s", what, n, all, errStalled, r.x.Manager.Log())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %d of %d: %w", what, n, all, ctx.Err())
		case <-ticker.C:
		}
	}
}

// save writes a file next to the results.
func (b *bench) save(name string, content []byte) error {
	if err := os.MkdirAll(b.out, 0o750); err != nil {
		return fmt.Errorf("create the directory of results: %w", err)
	}
	if err := os.WriteFile(filepath.Join(b.out, name), content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
