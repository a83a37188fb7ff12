package controlplane

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

const snapshotGroup = snapshotv1.GroupName

// SnapshotClient returns a cluster admin's client for VolumeSnapshots, without the proxy. The
// cluster serves them only with the option Snapshots or after InstallSnapshotCRDs.
func (c *Cluster) SnapshotClient() (snapshots.Interface, error) {
	config, err := c.RESTConfig(Direct)
	if err != nil {
		return nil, err
	}
	client, err := snapshots.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for the snapshots of %s: %w", c.Name(), err)
	}
	return client, nil
}

// InstallSnapshotCRDs creates the CustomResourceDefinitions of VolumeSnapshots, and returns when
// the cluster serves them. It replaces existing definitions.
func (c *Cluster) InstallSnapshotCRDs(ctx context.Context) error {
	root, err := kubebin.Root()
	if err != nil {
		return err
	}
	files, err := kubebin.SnapshotCRDs(ctx, root)
	if err != nil {
		return err
	}
	config, err := c.RESTConfig(Direct)
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths: files, ErrorIfPathMissing: true, MaxTime: readyTimeout, PollInterval: readyPoll,
	})
	if err != nil {
		return fmt.Errorf("install the definitions of VolumeSnapshots in %s: %w", c.Name(), err)
	}
	return nil
}

// ensureSnapshots installs the definitions and creates the classes.
func (c *Cluster) ensureSnapshots(ctx context.Context) error {
	if err := c.InstallSnapshotCRDs(ctx); err != nil {
		return err
	}
	if c.options.Storage == nil {
		return nil
	}
	client, err := c.SnapshotClient()
	if err != nil {
		return err
	}
	for _, class := range c.options.Storage.SnapshotClasses {
		_, err := client.SnapshotV1().VolumeSnapshotClasses().Create(ctx, &class, metav1.CreateOptions{})
		if err := unlessExists(err); err != nil {
			return err
		}
	}
	return nil
}

// snapshotControllerRules and snapshotterRules are as in external-snapshotter's
// deploy/kubernetes/*/rbac*.yaml, without group snapshots.
func snapshotControllerRules() []rbacv1.PolicyRule {
	all := append([]string{"create", "update", "patch", "delete"}, read...)
	return []rbacv1.PolicyRule{
		rule("", []string{"persistentvolumes"}, read),
		rule("", []string{"persistentvolumeclaims"}, append([]string{"update"}, read...)),
		rule(snapshotGroup, []string{"volumesnapshotclasses"}, read),
		rule(snapshotGroup, []string{"volumesnapshots", "volumesnapshotcontents"}, all),
		rule(snapshotGroup, []string{"volumesnapshots/status", "volumesnapshotcontents/status"}, []string{"update", "patch"}),
	}
}

func snapshotterRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(snapshotGroup, []string{"volumesnapshotclasses"}, read),
		rule(snapshotGroup, []string{"volumesnapshotcontents"}, append([]string{"update", "patch"}, read...)),
		rule(snapshotGroup, []string{"volumesnapshotcontents/status"}, []string{"update", "patch"}),
	}
}
