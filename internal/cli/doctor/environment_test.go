package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// healthyEnvironment returns the facts of a host without problems, all read successfully.
func healthyEnvironment() *HostFacts {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-a", Labels: map[string]string{v1alpha1.LabelVirtualNode: "true"}}}
	node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.DefaultTaintKey, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	drivers := []storagev1.CSINodeDriver{{Name: v1alpha1.ProvisionerName}, {Name: v1alpha1.PromiseDriverName}}
	return &HostFacts{
		Cluster: Cluster{Snapshots: read(true)},
		driverFacts: driverFacts{
			Driver:   read(storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true), AttachRequired: ptr.To(false), PreventPodSchedulingIfMissing: ptr.To(true)}}),
			Promises: read(storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(false), AttachRequired: ptr.To(false)}}),
			CSINodes: items(storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-a"}, Spec: storagev1.CSINodeSpec{Drivers: drivers}}),
		},
		Nodes: items(node), Paths: map[string]nodePath{"kosmos-a": {Code: 200}}, DaemonSets: items[appsv1.DaemonSet](), Unbound: items[unboundSnapshot](),
		controlPlaneFacts: controlPlaneFacts{Control: items[corev1.Pod](), FeatureGates: read(map[string]bool{"VolumeAttributesClass": true})},
		leftoverFacts: leftoverFacts{Classes: items(storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Provisioner: v1alpha1.ProvisionerName},
			storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Provisioner: "disk.example.com"})},
	}
}

func daemonSet(change func(*corev1.PodSpec)) appsv1.DaemonSet {
	d := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "agent"}}
	change(&d.Spec.Template.Spec)
	return d
}

func every(s *corev1.PodSpec) {
	s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func controlPod(component string, flags ...string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: component, Labels: map[string]string{"component": component}}}
	pod.Spec.Containers = []corev1.Container{{Name: component, Command: append([]string{component}, flags...)}}
	return pod
}

func TestChecks(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(h *HostFacts)
		want   []string // all findings that are not OK, as "level check"
		says   string
	}{
		"healthy":               {func(*HostFacts) {}, nil, ""},
		"nothing could be read": {func(h *HostFacts) { *h = HostFacts{} }, nil, ""},

		"no CSIDriver":              {func(h *HostFacts) { h.Driver.Item = nil }, []string{"Error Driver"}, "csi.xylem.io"},
		"no CSIDriver for promises": {func(h *HostFacts) { h.Promises.Item = nil }, []string{"Error Driver"}, "mock.csi.virtual-kubelet.io"},
		"no CSINode":                {func(h *HostFacts) { h.CSINodes.Items = nil }, []string{"Error Driver"}, `no CSINode with both of Xylem's drivers exists for Node "kosmos-a"`},
		"no CSINode, and the scheduler does not require one": {func(h *HostFacts) {
			h.CSINodes.Items = nil
			h.Driver.Item.Spec.PreventPodSchedulingIfMissing = ptr.To(false)
		}, []string{"Warning Driver"}, "the host's own nodes"},
		"no CSINode, and the host runs a Kubernetes version before 1.37": {func(h *HostFacts) {
			h.CSINodes.Items = nil
			h.Driver.Item.Spec.PreventPodSchedulingIfMissing = nil
		}, nil, ""},
		"a CSINode without a driver": {func(h *HostFacts) { h.CSINodes.Items[0].Spec.Drivers = nil }, []string{"Error Driver"}, "kosmos-a"},
		"the CSIDriver was changed":  {func(h *HostFacts) { h.Driver.Item.Spec.StorageCapacity = ptr.To(false) }, []string{"Error Driver"}, "storageCapacity"},

		"a feature gate is off in the API server": {func(h *HostFacts) {
			h.FeatureGates = read(map[string]bool{"VolumeAttributesClass": false, "Other": false})
		},
			[]string{"Error ControlPlane"}, "kube-apiserver runs with feature gate VolumeAttributesClass=false"},
		"a feature gate is off in the scheduler": {func(h *HostFacts) {
			h.Control = items(controlPod("kube-scheduler", "--feature-gates=A=true,NominatedNodeNameForExpectation=false"))
		}, []string{"Error ControlPlane"}, "kube-scheduler runs with feature gate NominatedNodeNameForExpectation=false"},
		"a controller is disabled": {func(h *HostFacts) {
			h.Control = items(controlPod("kube-controller-manager", "--controllers=*,-persistentvolume-binder-controller"))
		}, []string{"Error ControlPlane"}, "--controllers"},
		"the admission plugin is disabled": {func(h *HostFacts) {
			h.Control = items(controlPod("kube-apiserver", "--disable-admission-plugins=ValidatingAdmissionPolicy"))
		}, []string{"Error ControlPlane"}, "not in force"},
		"a visible control plane without problems": {func(h *HostFacts) {
			h.Control = items(controlPod("kube-scheduler", "--config=/etc/x"), controlPod("kube-controller-manager", "--controllers=*"))
		}, nil, "no feature gate or controller that Xylem needs is off"},

		"only the old annotation names the class of a claim": {func(h *HostFacts) {
			h.Version, h.Annotated = "v1.37.2", items(annotatedClaim{Namespace: "shop", Name: "other", Class: "theirs"}, annotatedClaim{Namespace: "shop", Name: "old", Class: "gold"})
		}, []string{"Error ControlPlane"}, `names the class of claim "shop/old", which makes kube-scheduler 1.37 panic`},
		"only the old annotation names the class of a claim, before Kubernetes 1.37": {func(h *HostFacts) {
			h.Version, h.Annotated = "v1.36.4", items(annotatedClaim{Namespace: "shop", Name: "old", Class: "gold"})
		}, []string{"Warning ControlPlane"}, "1.37"},
		"only the old annotation names the class of a claim, which belongs to another provisioner": {func(h *HostFacts) {
			h.Annotated = items(annotatedClaim{Namespace: "shop", Name: "other", Class: "theirs"})
		}, nil, ""},

		"the API server cannot reach the manager": {func(h *HostFacts) {
			h.Paths["kosmos-a"] = nodePath{Code: 503, Detail: "dial tcp 10.0.0.1:10250: i/o timeout"}
		}, []string{"Error NodeAPI"}, "i/o timeout"},
		"the manager rejects the API server":              {func(h *HostFacts) { h.Paths["kosmos-a"] = nodePath{Code: 403} }, []string{"Error NodeAPI"}, "client certificate"},
		"the user lacks permission for the kubelet check": {func(h *HostFacts) { h.Paths["kosmos-a"] = nodePath{Code: 403, Own: true} }, nil, ""},
		"the node API is off":                             {func(h *HostFacts) { h.Paths = nil }, nil, "disabled"},

		"a DaemonSet that may run on virtual nodes": {func(h *HostFacts) { h.DaemonSets = items(daemonSet(every)) }, []string{"Warning DaemonSets"}, `"agents/agent"`},
		"a DaemonSet that avoids virtual nodes": {func(h *HostFacts) {
			h.DaemonSets = items(daemonSet(func(*corev1.PodSpec) {}), daemonSet(func(s *corev1.PodSpec) {
				every(s)
				s.NodeSelector = map[string]string{"disk": "ssd"}
			}))
		}, nil, ""},
		"a DaemonSet whose Pods tolerate all taints but that of an away member": {func(h *HostFacts) {
			node := &h.Nodes.Items[0]
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintMemberAway, Value: "true", Effect: corev1.TaintEffectNoSchedule})
			h.DaemonSets = items(daemonSet(func(s *corev1.PodSpec) {
				s.Tolerations = []corev1.Toleration{{Key: v1alpha1.DefaultTaintKey, Operator: corev1.TolerationOpExists}}
			}))
		}, []string{"Warning DaemonSets"}, ""},

		"a snapshot waits for the snapshot-controller": {func(h *HostFacts) {
			h.Unbound = items(unboundSnapshot{Namespace: "shop", Name: "s", Age: time.Hour}, unboundSnapshot{Namespace: "shop", Name: "new", Age: time.Second})
		}, []string{"Warning Snapshots"}, `no content has been bound to VolumeSnapshot "shop/s" for up to 1h0m0s`},
	} {
		t.Run(name, func(t *testing.T) {
			h := healthyEnvironment()
			tc.change(h)
			var problems, all []string
			found, err := runJudges([]checkOf[*Facts]{driverCheck, controlPlaneCheck, nodeAPICheck, daemonSetsCheck, snapshotsCheck}, &Facts{Host: *h}, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if f.Level != OK {
					problems = append(problems, fmt.Sprintf("%s %s", f.Level, f.Check))
				}
				if all = append(all, f.Message); (f.ToDo == "") != (f.Level == OK) {
					t.Errorf("want a remedy only for problems: %+v", f)
				}
			}
			if diff := cmp.Diff(tc.want, problems); diff != "" {
				t.Errorf("-want +got:\n%s\n%s", diff, strings.Join(all, "\n"))
			}
			if !strings.Contains(strings.Join(all, "\n"), tc.says) {
				t.Errorf("no finding contains %q:\n%s", tc.says, strings.Join(all, "\n"))
			}
		})
	}
}
