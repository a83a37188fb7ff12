package engine

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/fault/oracle"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	canaryNamespace = "canary"
	// anotherHost is a cluster ID that no cluster has.
	anotherHost = "00000000-0000-4000-8000-000000000000"
)

// canary is an object that Xylem must ignore.
type canary struct {
	cluster *harness.Cluster
	object  client.Object
}

// makeCanaries creates foreign objects in every cluster. Some have names that scenarios use. In
// members, some have another host's stamp.
func makeCanaries(ctx context.Context, r *rig.Rig) ([]canary, error) {
	var all []canary
	for _, c := range r.Clusters() {
		objects := foreign("app", "data", nil)
		if c.Name() != rig.Host {
			objects = append(objects, foreign("stamped", "stamped", stamp(anotherHost))...)
			objects = append(objects, foreignVolume("canary", nil), foreignVolume("canary-stamped", stamp(anotherHost)))
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: canaryNamespace}}
		for _, obj := range append([]client.Object{namespace}, objects...) {
			err := c.API.Create(ctx, obj)
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return nil, fmt.Errorf("create %T %s in %s: %w", obj, obj.GetName(), c.Name(), err)
			}
			all = append(all, canary{c, obj})
		}
	}
	return all, harness.Await(ctx, "the canaries' volumes to settle", func(ctx context.Context) error { return atRest(ctx, all) })
}

// atRest waits until the PV controllers have finished with the volumes.
func atRest(ctx context.Context, canaries []canary) error {
	for _, c := range canaries {
		pv, ok := c.object.(*corev1.PersistentVolume)
		if !ok {
			continue
		}
		now := pv.DeepCopy()
		if err := c.cluster.API.Get(ctx, client.ObjectKeyFromObject(pv), now); err != nil {
			return fmt.Errorf("read volume %s of %s: %w", pv.Name, c.cluster.Name(), err)
		}
		if now.Status.Phase != corev1.VolumeAvailable {
			return fmt.Errorf("volume %s of %s is %s, want %s", pv.Name, c.cluster.Name(), now.Status.Phase, corev1.VolumeAvailable)
		}
	}
	return nil
}

// stamp returns a function that adds a host's stamp to an object.
func stamp(host string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		m.Labels = map[string]string{v1alpha1.LabelHost: host, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
		m.Annotations = map[string]string{
			v1alpha1.AnnotationRoot:    strings.TrimPrefix(m.Namespace+"/"+m.Name, "/"),
			v1alpha1.AnnotationRootUID: anotherHost,
		}
	}
}

func foreign(pod, claim string, change func(*metav1.ObjectMeta)) []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: canaryNamespace, Name: name}
		if change != nil {
			change(&m)
		}
		return m
	}
	none := ""
	return []client.Object{
		&corev1.PersistentVolumeClaim{ObjectMeta: meta(claim), Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &none,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
		// The scheduling gate keeps the scheduler from writing to the Pod.
		&corev1.Pod{ObjectMeta: meta(pod), Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/canary"}},
			Containers:      []corev1.Container{{Name: "main", Image: "example/main"}},
		}},
		&corev1.ConfigMap{ObjectMeta: meta(claim), Data: map[string]string{"k": "v"}},
		&corev1.Secret{ObjectMeta: meta(claim), StringData: map[string]string{"k": "v"}},
		&corev1.Service{ObjectMeta: meta(claim), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
	}
}

func foreignVolume(name string, change func(*metav1.ObjectMeta)) client.Object {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              "canary",
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "canary.example.com", VolumeHandle: name,
			}},
		},
	}
	if change != nil {
		change(&pv.ObjectMeta)
	}
	return pv
}

// versions returns the canaries' resource versions, with "" for a missing canary.
func versions(ctx context.Context, canaries []canary) ([]string, error) {
	found := make([]string, 0, len(canaries))
	for _, c := range canaries {
		err := c.cluster.API.Get(ctx, client.ObjectKeyFromObject(c.object), c.object)
		switch {
		case apierrors.IsNotFound(err):
			found = append(found, "")
		case err != nil:
			return nil, fmt.Errorf("read a canary in %s: %w", c.cluster.Name(), err)
		default:
			found = append(found, c.object.GetResourceVersion())
		}
	}
	return found, nil
}

func compared(canaries []canary, before, after []string) []oracle.Canary {
	all := make([]oracle.Canary, 0, len(canaries))
	for i, c := range canaries {
		name := fmt.Sprintf("%T %s/%s", c.object, c.object.GetNamespace(), c.object.GetName())
		all = append(all, oracle.Canary{Cluster: c.cluster.Name(), Object: name, Before: before[i], After: after[i]})
	}
	return all
}
