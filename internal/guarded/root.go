package guarded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/proof"
)

// HostWriter writes to the host on behalf of one member: the statuses of users' Pods and claims,
// Xylem's annotations on them, and Xylem's own objects.
type HostWriter struct {
	writer
	// statusBytes limits the bytes of written statuses.
	statusBytes ByteRate
	// changeLimiter limits how often the member makes Xylem change host objects.
	changeLimiter *ObjectRate
}

// NewHostWriter creates the writer for one member. cluster is the registration's name.
func NewHostWriter(c client.Client, cluster string, guard Guard) *HostWriter {
	w := newWriter(c, cluster, HostSide, guard)
	w.concurrency = NewConcurrencyLimit()
	return &HostWriter{writer: w, statusBytes: NewByteRate(), changeLimiter: NewChangeLimiter()}
}

// ApplyStatus applies an actor's part of the status of a user's Pod or claim. seen is the state on
// which the status is based.
func (r *HostWriter) ApplyStatus(ctx context.Context, by Actor, seen client.Object, status *unstructured.Unstructured) error {
	switch status.GetKind() {
	case "Pod", "PersistentVolumeClaim":
		if err := r.statusBytes.Wait(ctx, seen); err != nil {
			return err
		}
		return r.applyObjectStatus(ctx, by, seen, status)
	}
	return newForeignError(status, "Xylem may write only the statuses of Pods and claims")
}

// AnnotateClaim changes annotations of a user's claim: Xylem's own, and the scheduler's
// selected-node, which Xylem removes as a provisioner would, and which recovery sets.
func (r *HostWriter) AnnotateClaim(ctx context.Context, by Actor, before, after *corev1.PersistentVolumeClaim) error {
	allowed := before.DeepCopy()
	for key, value := range after.Annotations {
		if mayChangeAnnotation(key) {
			if allowed.Annotations == nil {
				allowed.Annotations = map[string]string{}
			}
			allowed.Annotations[key] = value
		}
	}
	maps.DeleteFunc(allowed.Annotations, func(key, _ string) bool {
		_, kept := after.Annotations[key]
		return !kept && mayChangeAnnotation(key)
	})
	if !equality.Semantic.DeepEqual(allowed, after) {
		return newForeignError(before, "Xylem may change only its xylem.io annotations and selected-node")
	}
	return r.patchObject(ctx, by, before, after)
}

func mayChangeAnnotation(key string) bool {
	return strings.HasPrefix(key, v1alpha1.Prefix) || key == volumehelpers.AnnSelectedNode
}

// FinishPodDeletion removes a Pod that is being deleted and no longer has a leaf, as its kubelet would.
func (r *HostWriter) FinishPodDeletion(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp == nil {
		return newForeignError(pod, "it is not being deleted")
	}
	return r.deleteObject(ctx, pod, client.GracePeriodSeconds(0))
}

// CreateOwned creates a host PV, or another object that belongs to Xylem.
func (r *HostWriter) CreateOwned(ctx context.Context, by Actor, obj client.Object) error {
	if err := checkOwned(obj); err != nil {
		return err
	}
	return r.createObject(ctx, by, obj)
}

// PatchOwned changes a host PV, or another object that Xylem created, from before to after. Use DropHostVolume
// for a change of a host PV that removes a finalizer or the record of a disk.
func (r *HostWriter) PatchOwned(ctx context.Context, by Actor, before, after client.Object) error {
	if err := checkOwned(before); err != nil {
		return err
	}
	if removesVolumeRecord(before, after) {
		return fmt.Errorf("release host PV %s without evidence: %w", before.GetName(), proof.ErrUnproven)
	}
	return r.patchObject(ctx, by, before, after)
}

// removesVolumeRecord reports whether a change of a host PV removes a finalizer, or removes or replaces the record of
// a disk.
func removesVolumeRecord(before, after client.Object) bool {
	was, isVolume := before.(*corev1.PersistentVolume)
	is, stays := after.(*corev1.PersistentVolume)
	if !isVolume || !stays {
		return isVolume
	}
	for _, record := range []string{v1alpha1.AnnotationVolume, v1alpha1.AttributeLeafUID, v1alpha1.AttributeDriver, v1alpha1.AttributeHandle} {
		if value := was.Annotations[record]; value != "" && is.Annotations[record] != value {
			return true
		}
	}
	return slices.ContainsFunc(was.Finalizers, func(f string) bool { return !slices.Contains(is.Finalizers, f) })
}

// DropHostVolume makes a change to a host PV that may remove finalizers and the record of its disk, if the
// evidence covers it.
func (r *HostWriter) DropHostVolume(ctx context.Context, by Actor, before, after *corev1.PersistentVolume, evidence proof.Evidence) error {
	if err := checkHostVolumeEvidence(evidence, proof.DropVolume, before); err != nil {
		return err
	}
	return r.patchObject(ctx, by, before, after)
}

// DeleteHostVolume deletes a host PV that is unchanged since it was read, if the evidence covers it.
func (r *HostWriter) DeleteHostVolume(ctx context.Context, volume *corev1.PersistentVolume, evidence proof.Evidence) error {
	if err := checkHostVolumeEvidence(evidence, proof.DropVolume, volume); err != nil {
		return err
	}
	return r.deleteObject(ctx, volume, IfUnchanged(volume))
}

// CopyEvidence is evidence for the removal of the record of one member's copy.
type CopyEvidence interface {
	proof.Evidence
	// CopyClusterID returns the member's cluster ID.
	CopyClusterID() string
}

// DropCopyRecord removes the record of a member's copy of a shared volume from its host PV, if the
// evidence covers it.
func (r *HostWriter) DropCopyRecord(ctx context.Context, by Actor, host *corev1.PersistentVolume, evidence CopyEvidence) error {
	if err := checkHostVolumeEvidence(evidence, proof.DropCopyRecord, host); err != nil {
		return err
	}
	return r.patchObject(ctx, by, host, hostpv.VolumeWithoutCopyIn(host, evidence.CopyClusterID()))
}

func checkHostVolumeEvidence(evidence proof.Evidence, action proof.Action, volume *corev1.PersistentVolume) error {
	if err := checkOwned(volume); err != nil {
		return err
	}
	return checkEvidence(evidence, action, volume)
}

// AllowOrDelayChange counts a change of a host object that only follows a change in the member, and returns 0. If
// the member causes such changes too often, AllowOrDelayChange counts nothing and returns how long to wait. It
// does not block, so the caller can handle other objects in the meantime.
func (r *HostWriter) AllowOrDelayChange(seen client.Object) time.Duration {
	return r.changeLimiter.TakeToken(seen.GetUID(), clock.RealClock{}.Now())
}

// AdjustCSIDriver sets preventPodSchedulingIfMissing and the rules for namespaces on one of Xylem's
// CSIDrivers, even if the installation created it instead of the manager.
func (r *HostWriter) AdjustCSIDriver(ctx context.Context, by Actor, before, after *storagev1.CSIDriver) error {
	if !slices.Contains(nodes.DriverNames(), before.Name) {
		return newForeignError(before, "it is not one of Xylem's CSIDrivers")
	}
	allowed := before.DeepCopy()
	if ptr.Deref(after.Spec.PreventPodSchedulingIfMissing, false) {
		allowed.Spec.PreventPodSchedulingIfMissing = ptr.To(true)
	}
	delete(allowed.Annotations, v1alpha1.AnnotationNamespaceRules)
	if rules, has := after.Annotations[v1alpha1.AnnotationNamespaceRules]; has {
		metav1.SetMetaDataAnnotation(&allowed.ObjectMeta, v1alpha1.AnnotationNamespaceRules, rules)
	}
	if !equality.Semantic.DeepEqual(after, allowed) {
		return newForeignError(before, "Xylem may change only its rules for namespaces and preventPodSchedulingIfMissing")
	}
	return r.patchObject(ctx, by, before, after)
}

// RecordVolumeImport records on an admin's host PV which leaf PV it represents.
func (r *HostWriter) RecordVolumeImport(ctx context.Context, by Actor, host, leaf *corev1.PersistentVolume, m mirror.Member) error {
	if name, asks := hostpv.RequestedImportIn(host, m.ClusterID); !asks || name != leaf.Name {
		return newForeignError(host, "it does not request an unrecorded volume of this member")
	}
	return r.patchObject(ctx, by, host, hostpv.RecordImport(host, leaf, m))
}

// FreePromise takes a promise from a member without writing to the member, so that another member
// can fulfill the promise. It removes the claim's placement first, and then changes the promise.
// Afterwards, any member can place the claim. claim is nil if it was deleted.
func (r *HostWriter) FreePromise(ctx context.Context, by Actor, promise *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, clusterID string, evidence proof.Evidence) error {
	if err := checkHostVolumeEvidence(evidence, proof.DropVolume, promise); err != nil {
		return err
	}
	if after := hostpv.ClaimWithoutPlacement(claim, clusterID); after != nil {
		if err := r.AnnotateClaim(ctx, by, claim, after); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return r.patchObject(ctx, by, promise, hostpv.ReleasePromise(promise, claim, clusterID))
}

// DeleteOwned deletes an object that Xylem created, if it is unchanged since it was read. A changed object
// may no longer belong to Xylem, because any user with write access can take it over by removing
// Xylem's labels. Use DeleteHostVolume to delete a host PV.
func (r *HostWriter) DeleteOwned(ctx context.Context, obj client.Object) error {
	if err := checkOwned(obj); err != nil {
		return err
	}
	if _, volume := obj.(*corev1.PersistentVolume); volume {
		return fmt.Errorf("delete host PV %s without evidence: %w", obj.GetName(), proof.ErrUnproven)
	}
	return r.deleteObject(ctx, obj, IfUnchanged(obj))
}

func checkOwned(obj client.Object) error {
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		if pv.Spec.CSI != nil && pv.Spec.CSI.Driver == v1alpha1.ProvisionerName && pv.Labels[v1alpha1.LabelClusterID] != "" || hostpv.IsPromise(pv) {
			return nil
		}
		return newForeignError(obj, "it is neither a member's volume nor a promise")
	}
	if class, ok := obj.(*storagev1.StorageClass); ok && (!hostpv.IsXylemClass(class) || !isReflectedClass(class)) {
		return newForeignError(obj, "it does not reflect a member's class")
	}
	if obj.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue {
		return nil
	}
	return newForeignError(obj, "it lacks the label "+v1alpha1.LabelManagedBy+"="+v1alpha1.ManagedByValue)
}

// isReflectedClass reports whether a class has labels for the registrations that offer it.
func isReflectedClass(class *storagev1.StorageClass) bool {
	for key := range class.Labels {
		if strings.HasPrefix(key, v1alpha1.LabelOfferedByPrefix) {
			return true
		}
	}
	return false
}
