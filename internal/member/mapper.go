package member

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewRESTMapper maps the kinds that Xylem uses in members, so that connecting needs no discovery.
func NewRESTMapper() meta.RESTMapper {
	versions := []schema.GroupVersion{corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion, policyv1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion, snapshotv1.SchemeGroupVersion}
	m := meta.NewDefaultRESTMapper(versions)
	for _, kind := range []string{"Pod", "PersistentVolumeClaim", "ConfigMap", "Secret", "Event", "ServiceAccount", "Service"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Namespace", "Node", "PersistentVolume"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	for _, kind := range []string{"StorageClass", "VolumeAttributesClass", "VolumeAttachment"} {
		m.Add(storagev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	m.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	m.Add(storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"), meta.RESTScopeNamespace)
	m.Add(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), meta.RESTScopeNamespace)
	m.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	m.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	m.Add(snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshot"), meta.RESTScopeNamespace)
	for _, kind := range []string{"VolumeSnapshotContent", "VolumeSnapshotClass"} {
		m.Add(snapshotv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	return m
}
