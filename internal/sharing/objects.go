package sharing

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const (
	// namePrefix is the prefix of the names of copies' PVs. The member's policy requires it, so that a
	// copy never has a name that a provisioner chooses.
	namePrefix = "xylem-copy-"
	// nameBytes is the length of the digest in these names.
	nameBytes = 16
)

// Name returns the name of the PV that is the copy of a host PV's volume.
func Name(hostID string, host *corev1.PersistentVolume) string {
	sum := sha256.Sum256([]byte(hostID + "/" + host.Spec.CSI.VolumeHandle))
	return namePrefix + hex.EncodeToString(sum[:nameBytes])
}

func (o Observed) stamp(obj metav1.Object) {
	mirror.VolumeCopy{HostID: o.Place.HostID, Volume: o.Host.Name, UID: o.Host.UID, Claim: o.Host.Spec.ClaimRef.UID}.Stamp(obj)
}

// claim returns the copy's claim.
func (o Observed) claim() *corev1.PersistentVolumeClaim {
	ref, spec := o.Host.Spec.ClaimRef, o.Host.Spec.DeepCopy()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      spec.AccessModes,
			VolumeMode:       spec.VolumeMode,
			StorageClassName: ptr.To(o.MemberClass.Name),
			VolumeName:       Name(o.Place.HostID, o.Host),
			Resources:        corev1.VolumeResourceRequirements{Requests: spec.Capacity},
		},
	}
	o.stamp(claim)
	return claim
}

// volume returns the copy's PV, or why it cannot be created. Driver, handle and attributes are the
// owner's. Mount options and Secrets are those of the member's class.
func (o Observed) volume() (*corev1.PersistentVolume, *mirror.Refusal) {
	source, ok := hostpv.SharedSource(o.Host)
	if !ok {
		return nil, mirror.Refuse(v1alpha1.ReasonBackendMismatch, "volume %q does not record the source that a copy in member %q needs. Use another claim", o.Host.Name, o.Place.Registration)
	}
	if refusal := o.setSecrets(source); refusal != nil {
		return nil, refusal
	}
	ref, spec := o.Host.Spec.ClaimRef, o.Host.Spec.DeepCopy()
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: Name(o.Place.HostID, o.Host)},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: source},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			Capacity:                      spec.Capacity,
			AccessModes:                   spec.AccessModes,
			VolumeMode:                    spec.VolumeMode,
			StorageClassName:              o.MemberClass.Name,
			MountOptions:                  slices.Clone(o.MemberClass.MountOptions),
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: ref.Namespace, Name: ref.Name},
		},
	}
	if o.Claim != nil {
		pv.Spec.ClaimRef.UID = o.Claim.UID
	}
	o.stamp(pv)
	return pv, nil
}

// The prefixes of the class parameters with which external-provisioner selects the Secrets of a PV
// (https://kubernetes-csi.github.io/docs/secrets-and-credentials-storage-class.html). The suffixes
// are -name and -namespace.
const (
	controllerPublish = "csi.storage.k8s.io/controller-publish-secret"
	nodeStage         = "csi.storage.k8s.io/node-stage-secret"
	nodePublish       = "csi.storage.k8s.io/node-publish-secret"
)

// setSecrets sets the references to the Secrets that the member's class names.
func (o Observed) setSecrets(source *corev1.CSIPersistentVolumeSource) *mirror.Refusal {
	for prefix, target := range map[string]**corev1.SecretReference{
		controllerPublish: &source.ControllerPublishSecretRef,
		nodeStage:         &source.NodeStageSecretRef,
		nodePublish:       &source.NodePublishSecretRef,
	} {
		name, namespace := o.resolved(prefix+"-name"), o.resolved(prefix+"-namespace")
		if name == "" && namespace == "" {
			continue
		}
		if strings.Contains(name+namespace, "$") {
			return mirror.Refuse(v1alpha1.ReasonBackendMismatch, "class %q in member %q names a Secret (%s) with a template that depends on the volume, so Xylem cannot create a copy of volume %q in that member. In spec.storage.shared, list a class that names existing Secrets",
				o.MemberClass.Name, o.Place.Registration, prefix, o.Host.Name)
		}
		*target = &corev1.SecretReference{Name: name, Namespace: namespace}
	}
	return nil
}

// resolved returns a parameter of the member's class, with the templates for the claim's name and
// namespace resolved.
func (o Observed) resolved(parameter string) string {
	ref := o.Host.Spec.ClaimRef
	return strings.NewReplacer("${pvc.name}", ref.Name, "${pvc.namespace}", ref.Namespace).Replace(o.MemberClass.Parameters[parameter])
}
