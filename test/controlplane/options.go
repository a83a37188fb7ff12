package controlplane

import (
	"cmp"
	"maps"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// Annotations on Pods that change how KWOK runs them. Durations are Go's ("1.5s").
const (
	// AnnotationComplete, with any value, makes a running Pod succeed.
	AnnotationComplete = "controlplane.xylem.io/complete"
	// AnnotationFail, with any value, makes a running Pod fail.
	AnnotationFail = "controlplane.xylem.io/fail"
	// AnnotationRunFor is how long a Pod with AnnotationComplete or AnnotationFail runs. The default
	// is 0.
	AnnotationRunFor = "controlplane.xylem.io/run-for"
	// AnnotationStartAfter delays a bound Pod's start. The default is 0.
	AnnotationStartAfter = "controlplane.xylem.io/start-after"
	// AnnotationStopAfter is how long a deleted Pod takes to terminate. The default is 0.
	AnnotationStopAfter = "controlplane.xylem.io/stop-after"
)

// LabelKWOK marks the Nodes that KWOK runs. KWOK ignores other Nodes and their Pods.
const LabelKWOK = "controlplane.xylem.io/kwok"

// The StorageClasses of DefaultStorage.
const (
	// ClassHostpath, named as in Xylem's first example, waits for a consumer, is expandable, and
	// has policy Delete.
	ClassHostpath = "openebs-hostpath"
	// ClassFast binds immediately, is expandable, and has policy Delete.
	ClassFast = "fast"
	// ClassRetained waits for a consumer, is expandable, and has policy Retain.
	ClassRetained = "retained"
)

// The VolumeSnapshotClasses of DefaultStorage.
const (
	// ClassSnapshots has policy Delete.
	ClassSnapshots = "snapshots"
	// ClassRetainedSnapshots has policy Retain.
	ClassRetainedSnapshots = "retained-snapshots"
)

// DefaultDriverName is the default of StorageOptions.DriverName.
const DefaultDriverName = "dir.csi.controlplane.xylem.io"

const (
	// defaultQPS is the limit of the control plane's clients, in requests per second. With Kubernetes'
	// default of 20, kube-controller-manager binds fewer than seven volumes per second, which would
	// dominate every measurement.
	defaultQPS = 2000
	// retryStart and retryMax are the default backoff of the sidecars and snapshot-controller.
	retryStart, retryMax = 200 * time.Millisecond, 5 * time.Second
	// startTimeout is the maximum time for the start of all clusters.
	startTimeout = 4 * time.Minute
)

// Options configures Start. The zero value is a host without members.
type Options struct {
	// Host configures the host. By default, its name is "host" and it has one node.
	Host ClusterOptions
	// Members configures the members. Names are required and must be unique.
	Members []ClusterOptions
	// Dir is the data directory. If it is empty, Start creates a temporary one. The path must be
	// short, because it contains unix sockets (see Start).
	Dir string
	// KeepData keeps Dir after Stop. A given Dir is always kept.
	KeepData bool
	// BinDir is the directory of the cluster programs. By default, it is the one that `make kube`
	// fills.
	BinDir string
	// Timeout is how long Start may take. 0 means four minutes.
	Timeout time.Duration
	// Progress receives a message without a line break for each step that takes time. It may be
	// nil, and must be safe for concurrent use.
	Progress func(format string, args ...any)
}

// ClusterOptions configure one cluster.
type ClusterOptions struct {
	// Name is the cluster's name. It consists of lower case letters, digits and dashes.
	Name string
	// Version is the minor version of kube-apiserver, kube-controller-manager and kube-scheduler,
	// such as "1.36". Empty means the version of test/kube. `make kube-versions` builds the
	// others. All other programs are those of test/kube.
	Version string
	// Nodes is the number of KWOK nodes, named <name>-node-1 and so on. 0 means one in the host and
	// two in a member; -1 means none.
	Nodes int
	// NodeCapacity is the capacity of each node; nil means DefaultNodeCapacity.
	NodeCapacity corev1.ResourceList
	// NodeLabels are added to the labels of each node.
	NodeLabels map[string]string
	// Storage gives the cluster a CSI driver with its sidecars and classes. nil means
	// DefaultStorage in a member, and no storage in the host.
	Storage *StorageOptions
	// NoStorage creates a member without storage.
	NoStorage bool
	// Snapshots gives the cluster the CustomResourceDefinitions of VolumeSnapshots,
	// snapshot-controller, and, with Storage, csi-snapshotter and the VolumeSnapshotClasses. With
	// APIOnly, it installs only the definitions.
	Snapshots bool
	// Attach makes the CSI driver attach volumes: the cluster has csi-attacher, its CSIDriver
	// requires attachment, and each node has a CSINode. It requires Storage.
	Attach bool
	// APIOnly starts only etcd and kube-apiserver: no controllers, no nodes, no storage.
	APIOnly bool
	// Kubelets lets the API server of a member connect to KWOK as the kubelet of its nodes. Logs,
	// exec, attach and port-forward work as configured in stages/kubelet.yaml, with this machine's
	// programs and files. In the host, the API server presents the client certificate of a
	// cluster admin to kubelets.
	Kubelets bool
	// Kubelet is the loopback address of the caller's own server, which then serves as the nodes'
	// kubelet instead of KWOK, for example one of package kubelet. It requires Kubelets.
	Kubelet string
	// KubeAPIQPS and KubeAPIBurst limit the clients of the control plane and the sidecars, in
	// requests per second. 0 means 2000.
	KubeAPIQPS, KubeAPIBurst int
	// NodeMonitorGracePeriod is how long a node may be unresponsive before it is marked unhealthy;
	// 0 means kube-controller-manager's default (50 s).
	NodeMonitorGracePeriod time.Duration
	// ExtraArgs are appended to the arguments of processes. Later arguments take precedence.
	ExtraArgs map[ProcessName][]string
}

// WithArgs returns the options with additional arguments for a process. ExtraArgs take precedence over them.
func (o ClusterOptions) WithArgs(process ProcessName, args ...string) ClusterOptions {
	all := map[ProcessName][]string{}
	maps.Copy(all, o.ExtraArgs)
	all[process] = slices.Concat(args, all[process])
	o.ExtraArgs = all
	return o
}

// StorageOptions configure a cluster's storage.
type StorageOptions struct {
	// DriverName is the name of the CSI driver. It defaults to DefaultDriverName.
	DriverName string
	// Classes are the StorageClasses. Their provisioner defaults to the driver.
	Classes []storagev1.StorageClass
	// SnapshotClasses are the VolumeSnapshotClasses of a cluster with Snapshots. Their driver
	// defaults to the cluster's driver.
	SnapshotClasses []snapshotv1.VolumeSnapshotClass
	// MaxVolumeBytes limits each volume, and CapacityBytes all volumes together. 0 means no limit.
	MaxVolumeBytes, CapacityBytes int64
	// RetryStart and RetryMax are the initial and maximum backoff of the sidecars. 0 means 200 ms
	// and 5 s, so that tests need not wait for minutes.
	RetryStart, RetryMax time.Duration
	// CallTimeout is the timeout of the sidecars' calls to the driver. 0 means 10 s.
	CallTimeout time.Duration
}

// Members returns the default options for members with these names.
func Members(names ...string) []ClusterOptions {
	out := make([]ClusterOptions, 0, len(names))
	for _, name := range names {
		out = append(out, ClusterOptions{Name: name})
	}
	return out
}

// DefaultNodeCapacity is the capacity of a KWOK node.
func DefaultNodeCapacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("64Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             resource.MustParse("250"),
	}
}

// DefaultStorage returns storage options with the StorageClasses ClassHostpath, ClassFast and
// ClassRetained, and the VolumeSnapshotClasses ClassSnapshots and ClassRetainedSnapshots.
func DefaultStorage() *StorageOptions {
	return &StorageOptions{Classes: []storagev1.StorageClass{
		Class(ClassHostpath, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete),
		Class(ClassFast, storagev1.VolumeBindingImmediate, corev1.PersistentVolumeReclaimDelete),
		Class(ClassRetained, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimRetain),
	}, SnapshotClasses: []snapshotv1.VolumeSnapshotClass{
		SnapshotClass(ClassSnapshots, snapshotv1.VolumeSnapshotContentDelete),
		SnapshotClass(ClassRetainedSnapshots, snapshotv1.VolumeSnapshotContentRetain),
	}}
}

// SnapshotClass returns a VolumeSnapshotClass.
func SnapshotClass(name string, policy snapshotv1.DeletionPolicy) snapshotv1.VolumeSnapshotClass {
	return snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: name}, DeletionPolicy: policy}
}

// Class returns a StorageClass that allows expansion.
func Class(
	name string, binding storagev1.VolumeBindingMode, reclaim corev1.PersistentVolumeReclaimPolicy,
) storagev1.StorageClass {
	expand := true
	class := storagev1.StorageClass{
		ReclaimPolicy: &reclaim, VolumeBindingMode: &binding, AllowVolumeExpansion: &expand,
	}
	class.Name = name
	return class
}

// withDefaults returns the options with defaults for a host or a member.
func (o ClusterOptions) withDefaults(host bool) ClusterOptions {
	if o.APIOnly {
		o.Nodes, o.NoStorage, o.Storage = -1, true, nil
	}
	switch {
	case o.Nodes < 0:
		o.Nodes = 0
	case o.Nodes == 0 && host:
		o.Nodes = 1
	case o.Nodes == 0:
		o.Nodes = 2
	}
	if host && o.Name == "" {
		o.Name = "host"
	}
	if o.NodeCapacity == nil {
		o.NodeCapacity = DefaultNodeCapacity()
	}
	if o.KubeAPIQPS == 0 {
		o.KubeAPIQPS = defaultQPS
	}
	if o.KubeAPIBurst == 0 {
		o.KubeAPIBurst = defaultQPS
	}
	switch {
	case o.NoStorage:
		o.Storage = nil
	case o.Storage != nil:
		o.Storage = o.Storage.withDefaults()
	case !host:
		o.Storage = DefaultStorage().withDefaults()
	}
	return o
}

// extras are the programs that the cluster needs beyond kubebin.Core.
func (o ClusterOptions) extras() []string {
	var programs []string
	if o.Snapshots && !o.APIOnly {
		programs = append(programs, kubebin.SnapshotController)
		if o.Storage != nil {
			programs = append(programs, kubebin.Snapshotter)
		}
	}
	if o.Attach && o.Storage != nil {
		programs = append(programs, kubebin.Attacher)
	}
	return programs
}

func (o StorageOptions) withDefaults() *StorageOptions {
	if o.DriverName == "" {
		o.DriverName = DefaultDriverName
	}
	if o.RetryStart == 0 {
		o.RetryStart = retryStart
	}
	if o.RetryMax == 0 {
		o.RetryMax = retryMax
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 10 * time.Second
	}
	classes := make([]storagev1.StorageClass, 0, len(o.Classes))
	for _, c := range o.Classes {
		c := *c.DeepCopy()
		if c.Provisioner == "" {
			c.Provisioner = o.DriverName
		}
		classes = append(classes, c)
	}
	o.Classes = classes
	snapshotClasses := make([]snapshotv1.VolumeSnapshotClass, 0, len(o.SnapshotClasses))
	for _, c := range o.SnapshotClasses {
		c := *c.DeepCopy()
		c.Driver = cmp.Or(c.Driver, o.DriverName)
		snapshotClasses = append(snapshotClasses, c)
	}
	o.SnapshotClasses = snapshotClasses
	return &o
}

// nodeLabels returns the labels that a kubelet would set, and this package's own. KWOK runs the
// Nodes whose LabelKWOK has the value nodesOf.
func nodeLabels(o ClusterOptions, nodesOf, name, arch string) map[string]string {
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelArchStable: arch,
		corev1.LabelOSStable:   "linux",
		LabelKWOK:              nodesOf,
	}
	maps.Copy(labels, o.NodeLabels)
	return labels
}
