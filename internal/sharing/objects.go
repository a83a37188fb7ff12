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
	// copyNamePrefix is the prefix of the names of copies' PVs. The member's policy requires it, so that a
	// copy never has a name that a provisioner chooses.
	copyNamePrefix = "xylem-copy-"
	// copyNameBytes is the length of the digest in these names.
	copyNameBytes = 16
)

// CopyVolumeName returns the name of the PV that is the copy of a host PV's volume.
func CopyVolumeName(hostID string, host *corev1.PersistentVolume) string {
	sum := sha256.Sum256([]byte(hostID + "/" + host.Spec.CSI.VolumeHandle))
	return copyNamePrefix + hex.EncodeToString(sum[:copyNameBytes])
}

func (o Observed) stampCopy(obj metav1.Object) {
	mirror.VolumeCopy{HostID: o.Place.HostID, Volume: o.Host.Name, VolumeUID: o.Host.UID, ClaimUID: o.Host.Spec.ClaimRef.UID}.StampCopy(obj)
}

// newCopyClaim returns the copy's claim.
func (o Observed) newCopyClaim() *corev1.PersistentVolumeClaim {
	ref, spec := o.Host.Spec.ClaimRef, o.Host.Spec.DeepCopy()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      spec.AccessModes,
			VolumeMode:       spec.VolumeMode,
			StorageClassName: ptr.To(o.MemberClass.Name),
			VolumeName:       CopyVolumeName(o.Place.HostID, o.Host),
			Resources:        corev1.VolumeResourceRequirements{Requests: spec.Capacity},
		},
	}
	o.stampCopy(claim)
	return claim
}

// newCopyVolume returns the copy's PV, or why it cannot be created. Driver, handle and attributes are the
// owner's. Mount options and Secrets are those of the member's class.
func (o Observed) newCopyVolume() (*corev1.PersistentVolume, *mirror.Refusal) {
	source, ok := hostpv.SharedVolumeSource(o.Host)
	if !ok {
		return nil, mirror.NewRefusal(v1alpha1.ReasonBackendMismatch, "volume %q does not record the source that a copy in member %q needs. Use another claim", o.Host.Name, o.Place.Registration)
	}
	if refusal := o.setSecretRefs(source); refusal != nil {
		return nil, refusal
	}
	ref, spec := o.Host.Spec.ClaimRef, o.Host.Spec.DeepCopy()
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: CopyVolumeName(o.Place.HostID, o.Host)},
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
	o.stampCopy(pv)
	return pv, nil
}

// The prefixes of the class parameters with which external-provisioner selects the Secrets of a PV
// (https://kubernetes-csi.github.io/docs/secrets-and-credentials-storage-class.html). The suffixes
// are -name and -namespace.
const (
	controllerPublishKey = "csi.storage.k8s.io/controller-publish-secret"
	nodeStageKey         = "csi.storage.k8s.io/node-stage-secret"
	nodePublishKey       = "csi.storage.k8s.io/node-publish-secret"
)

// setSecretRefs sets the references to the Secrets that the member's class names.
func (o Observed) setSecretRefs(source *corev1.CSIPersistentVolumeSource) *mirror.Refusal {
	for prefix, target := range map[string]**corev1.SecretReference{
		controllerPublishKey: &source.ControllerPublishSecretRef,
		nodeStageKey:         &source.NodeStageSecretRef,
		nodePublishKey:       &source.NodePublishSecretRef,
	} {
		name, namespace := o.resolveParameter(prefix+"-name"), o.resolveParameter(prefix+"-namespace")
		if name == "" && namespace == "" {
			continue
		}
		if strings.Contains(name+namespace, "$") {
			return mirror.NewRefusal(v1alpha1.ReasonBackendMismatch, "class %q in member %q names a Secret (%s) with a template that depends on the volume, so Xylem cannot create a copy of volume %q in that member. In spec.storage.shared, list a class that names existing Secrets",
				o.MemberClass.Name, o.Place.Registration, prefix, o.Host.Name)
		}
		*target = &corev1.SecretReference{Name: name, Namespace: namespace}
	}
	return nil
}

// resolveParameter returns a parameter of the member's class, with the templates for the claim's name and
// namespace resolved.
func (o Observed) resolveParameter(parameter string) string {
	ref := o.Host.Spec.ClaimRef
	return strings.NewReplacer("${pvc.name}", ref.Name, "${pvc.namespace}", ref.Namespace).Replace(o.MemberClass.Parameters[parameter])
}
