package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"golang.org/x/sync/errgroup"
)

// ensureBase creates the initial objects of a cluster: the programs' roles, the policy for KWOK's
// deletions, the nodes, and the storage. It does not change existing objects.
func (c *Cluster) ensureBase(ctx context.Context) error {
	version, err := c.client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("read the version of %s: %w", c.Name(), err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for user, rules := range c.roles() {
		group.Go(func() error { return ensureRole(ctx, c.client, user, rules) })
	}
	group.Go(func() error { return c.ensureDeletionPolicy(ctx) })
	for i, name := range c.NodeNames() {
		group.Go(func() error {
			_, err := c.client.CoreV1().Nodes().Create(ctx, c.node(i+1, name, version.GitVersion), metav1.CreateOptions{})
			if err := unlessExists(err); err != nil || !c.attaches() {
				return err
			}
			return c.ensureCSINode(ctx, name)
		})
	}
	if s := c.options.Storage; s != nil {
		group.Go(func() error { return c.ensureStorage(ctx, s) })
	}
	if c.options.Snapshots {
		group.Go(func() error { return c.ensureSnapshots(ctx) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("create the initial objects of %s: %w", c.Name(), err)
	}
	return nil
}

func unlessExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func rule(group string, resources, verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

var (
	read       = []string{"get", "list", "watch"}
	eventWrite = []string{"create", "update", "patch", "list", "watch"}
)

// roles returns the RBAC rules of the programs for which Kubernetes has no default roles, by user.
func (c *Cluster) roles() map[string][]rbacv1.PolicyRule {
	events := []rbacv1.PolicyRule{
		rule("", []string{"events"}, eventWrite), rule("events.k8s.io", []string{"events"}, eventWrite),
	}
	roles := map[string][]rbacv1.PolicyRule{
		userKWOK: append([]rbacv1.PolicyRule{
			rule("", []string{"nodes", "pods"}, append([]string{"patch", "update", "delete"}, read...)),
			rule("", []string{"nodes/status", "pods/status"}, []string{"patch", "update"}),
			rule("coordination.k8s.io", []string{"leases"}, append([]string{"create", "patch", "update", "delete"}, read...)),
		}, events...),
	}
	if c.options.Snapshots {
		roles[userSnapshotController] = append(snapshotControllerRules(), events...)
	}
	if c.options.Storage == nil {
		return roles
	}
	if c.options.Snapshots {
		roles[userSnapshotter] = append(snapshotterRules(), events...)
	}
	if c.options.Attach {
		roles[userAttacher] = append(attacherRules(), events...)
	}
	roles[userProvisioner] = append([]rbacv1.PolicyRule{
		rule("", []string{"persistentvolumes"}, append([]string{"create", "patch", "delete"}, read...)),
		rule("", []string{"persistentvolumeclaims"}, append([]string{"update"}, read...)),
		rule("", []string{"nodes"}, read),
		rule("storage.k8s.io", []string{"storageclasses", "csinodes", "volumeattachments", "volumeattributesclasses"}, read),
		rule(snapshotGroup, []string{"volumesnapshots"}, append([]string{"update"}, read...)),
		rule(snapshotGroup, []string{"volumesnapshotcontents"}, []string{"get", "list"}),
	}, events...)
	roles[userResizer] = append([]rbacv1.PolicyRule{
		rule("", []string{"persistentvolumes"}, append([]string{"patch"}, read...)),
		rule("", []string{"persistentvolumeclaims", "pods"}, read),
		rule("", []string{"persistentvolumeclaims/status"}, []string{"patch"}),
		rule("storage.k8s.io", []string{"volumeattributesclasses"}, read),
	}, events...)
	return roles
}

func ensureRole(ctx context.Context, client kubernetes.Interface, user string, rules []rbacv1.PolicyRule) error {
	name := metav1.ObjectMeta{Name: "controlplane:" + user}
	_, err := client.RbacV1().ClusterRoles().Create(ctx,
		&rbacv1.ClusterRole{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
	if err := unlessExists(err); err != nil {
		return err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	return unlessExists(err)
}

// kubeletIP returns the address of a node's kubelet. With Kubelets, it is KWOK's address.
func (c *Cluster) kubeletIP(n int) string {
	if c.options.Kubelets {
		return loopback
	}
	return c.nodeIP(n)
}

func (c *Cluster) daemonEndpoints() corev1.NodeDaemonEndpoints {
	if !c.options.Kubelets {
		return corev1.NodeDaemonEndpoints{}
	}
	number, err := strconv.ParseInt(port(cmp.Or(c.options.Kubelet, c.kwokAddress)), 10, 32)
	if err != nil {
		return corev1.NodeDaemonEndpoints{}
	}
	return corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(number)}}
}

// node returns a Node like one that a kubelet registers. KWOK makes it Ready.
func (c *Cluster) node(n int, name, version string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: nodeLabels(c.options, c.nodesOf, name, runtime.GOARCH),
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: corev1.NodeSpec{PodCIDR: c.nodePodCIDR(n), PodCIDRs: []string{c.nodePodCIDR(n)}},
		Status: corev1.NodeStatus{
			Capacity:    c.options.NodeCapacity,
			Allocatable: c.options.NodeCapacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: c.kubeletIP(n)},
				{Type: corev1.NodeHostName, Address: name},
			},
			DaemonEndpoints: c.daemonEndpoints(),
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: name, SystemUUID: name, BootID: name,
				KernelVersion: "6.12.0", OSImage: "KWOK", ContainerRuntimeVersion: "kwok://0",
				KubeletVersion: version, OperatingSystem: "linux", Architecture: runtime.GOARCH,
			},
		},
	}
}

func (c *Cluster) ensureStorage(ctx context.Context, s *StorageOptions) error {
	client, attach := c.client, c.attaches()
	no, fsGroup := false, storagev1.FileFSGroupPolicy
	_, err := client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: s.DriverName},
		Spec: storagev1.CSIDriverSpec{
			AttachRequired: &attach, PodInfoOnMount: &no, FSGroupPolicy: &fsGroup,
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent},
		},
	}, metav1.CreateOptions{})
	if err := unlessExists(err); err != nil {
		return err
	}
	for _, class := range s.Classes {
		_, err := client.StorageV1().StorageClasses().Create(ctx, &class, metav1.CreateOptions{})
		if err := unlessExists(err); err != nil {
			return err
		}
	}
	return nil
}
