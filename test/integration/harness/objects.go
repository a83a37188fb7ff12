package harness

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
)

// Claim returns a claim that requests 1Gi of a class.
func Claim(namespace, name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// Pod returns a Pod that uses claims and may run on virtual nodes. Each volume is named after
// its claim.
func Pod(namespace, name string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			Containers:  []corev1.Container{{Name: "main", Image: "example/main"}},
			Tolerations: []corev1.Toleration{{Key: v1alpha1.DefaultTaintKey, Operator: corev1.TolerationOpExists}},
		},
	}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return pod
}

// OnNodes requires a Pod to run on one of the nodes, by their hostname label. Without nodes, the
// Pod may run on any node.
func OnNodes(pod *corev1.Pod, nodes ...string) {
	if len(nodes) == 0 {
		return
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes}},
		}}},
	}}
}

// HostClass returns a class with Xylem's provisioner. It waits for a consumer, allows expansion and
// has policy Delete. It maps to the members' ClassHostpath unless the parameters specify another
// class.
func HostClass(name string, parameters map[string]string) *storagev1.StorageClass {
	class := controlplane.Class(name, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
	class.Provisioner = v1alpha1.ProvisionerName
	class.Parameters = map[string]string{v1alpha1.ParameterMemberClass: controlplane.ClassHostpath}
	for key, value := range parameters {
		class.Parameters[key] = value
	}
	return &class
}

// Create creates objects sequentially.
func (c *Cluster) Create(ctx context.Context, objects ...client.Object) error {
	for _, obj := range objects {
		if err := c.API.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %T %s in %s: %w", obj, obj.GetName(), c.Name(), err)
		}
	}
	return nil
}

// CreateNamespace creates a namespace, and waits for the service account that its Pods need.
func (c *Cluster) CreateNamespace(ctx context.Context, name string) error {
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return err
	}
	return c.AwaitNamespace(ctx, name)
}

// AwaitNamespace waits for the service account that the Pods of a new namespace need.
func (c *Cluster) AwaitNamespace(ctx context.Context, name string) error {
	return Await(ctx, "namespace "+name, func(ctx context.Context) error {
		return c.API.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
}
