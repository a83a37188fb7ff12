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
	"github.com/xylem-io/xylem/internal/guarded/pacing"
	"github.com/xylem-io/xylem/internal/guarded/precondition"
	"github.com/xylem-io/xylem/internal/guarded/results"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/proof"
)

// Root writes to the host on behalf of one member: the statuses of users' Pods and claims,
// Xylem's annotations on them, and Xylem's own objects.
type Root struct {
	writer
	// pace limits the bytes of written statuses.
	pace pacing.ByteRate
	// changes limits how often the member makes Xylem change host objects.
	changes *pacing.ObjectRate
}

// NewRoot creates the writer for one member. cluster is the registration's name.
func NewRoot(c client.Client, cluster string, guard Guard) *Root {
	w := newWriter(c, cluster, results.Root, guard)
	w.concurrency = pacing.NewConcurrencyLimit()
	return &Root{writer: w, pace: pacing.NewByteRate(), changes: pacing.NewChanges()}
}

// ApplyStatus applies an actor's part of the status of a user's Pod or claim. seen is the state on
// which the status is based.
func (r *Root) ApplyStatus(ctx context.Context, by Actor, seen client.Object, status *unstructured.Unstructured) error {
	switch status.GetKind() {
	case "Pod", "PersistentVolumeClaim":
		if err := r.pace.Wait(ctx, seen); err != nil {
			return err
		}
		return r.applyStatus(ctx, by, seen, status)
	}
	return foreign(status, "Xylem may write only the statuses of Pods and claims")
}

// AnnotateClaim changes annotations of a user's claim: Xylem's own, and the scheduler's
// selected-node, which Xylem removes as a provisioner would, and which recovery sets.
func (r *Root) AnnotateClaim(ctx context.Context, by Actor, before, after *corev1.PersistentVolumeClaim) error {
	allowed := before.DeepCopy()
	for key, value := range after.Annotations {
		if ownAnnotation(key) {
			if allowed.Annotations == nil {
				allowed.Annotations = map[string]string{}
			}
			allowed.Annotations[key] = value
		}
	}
	maps.DeleteFunc(allowed.Annotations, func(key, _ string) bool {
		_, kept := after.Annotations[key]
		return !kept && ownAnnotation(key)
	})
	if !equality.Semantic.DeepEqual(allowed, after) {
		return foreign(before, "Xylem may change only its xylem.io annotations and selected-node")
	}
	return r.patch(ctx, by, before, after)
}

func ownAnnotation(key string) bool {
	return strings.HasPrefix(key, v1alpha1.Prefix) || key == volumehelpers.AnnSelectedNode
}

// FinishPod removes a Pod that is being deleted and no longer has a leaf, as its kubelet would.
func (r *Root) FinishPod(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp == nil {
		return foreign(pod, "it is not being deleted")
	}
	return r.delete(ctx, pod, client.GracePeriodSeconds(0))
}

// Create creates a host PV, or another object that belongs to Xylem.
func (r *Root) Create(ctx context.Context, by Actor, obj client.Object) error {
	if err := ownedRoot(obj); err != nil {
		return err
	}
	return r.create(ctx, by, obj)
}

// Patch changes a host PV, or another object that Xylem created, from before to after. Use DropVolume
// for a change of a host PV that removes a finalizer or the record of a disk.
func (r *Root) Patch(ctx context.Context, by Actor, before, after client.Object) error {
	if err := ownedRoot(before); err != nil {
		return err
	}
	if drops(before, after) {
		return fmt.Errorf("release host PV %s without evidence: %w", before.GetName(), proof.ErrUnproven)
	}
	return r.patch(ctx, by, before, after)
}

// drops reports whether a change of a host PV removes a finalizer, or removes or replaces the record of
// a disk.
func drops(before, after client.Object) bool {
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

// DropVolume makes a change to a host PV that may remove finalizers and the record of its disk, if the
// evidence covers it.
func (r *Root) DropVolume(ctx context.Context, by Actor, before, after *corev1.PersistentVolume, evidence proof.Evidence) error {
	if err := coveredRoot(evidence, proof.DropVolume, before); err != nil {
		return err
	}
	return r.patch(ctx, by, before, after)
}

// DeleteVolume deletes a host PV that is unchanged since it was read, if the evidence covers it.
func (r *Root) DeleteVolume(ctx context.Context, volume *corev1.PersistentVolume, evidence proof.Evidence) error {
	if err := coveredRoot(evidence, proof.DropVolume, volume); err != nil {
		return err
	}
	return r.delete(ctx, volume, precondition.Unchanged(volume))
}

// CopyEvidence is evidence for the removal of the record of one member's copy.
type CopyEvidence interface {
	proof.Evidence
	// Cluster returns the member's cluster ID.
	Cluster() string
}

// DropCopyRecord removes the record of a member's copy of a shared volume from its host PV, if the
// evidence covers it.
func (r *Root) DropCopyRecord(ctx context.Context, by Actor, host *corev1.PersistentVolume, evidence CopyEvidence) error {
	if err := coveredRoot(evidence, proof.DropCopyRecord, host); err != nil {
		return err
	}
	return r.patch(ctx, by, host, hostpv.WithoutCopyIn(host, evidence.Cluster()))
}

func coveredRoot(evidence proof.Evidence, action proof.Action, volume *corev1.PersistentVolume) error {
	if err := ownedRoot(volume); err != nil {
		return err
	}
	return covers(evidence, action, volume)
}

// Delay counts a change of a host object that only follows a change in the member, and returns 0. If
// the member causes such changes too often, Delay counts nothing and returns how long to wait. It
// does not block, so the caller can handle other objects in the meantime.
func (r *Root) Delay(seen client.Object) time.Duration {
	return r.changes.Take(seen.GetUID(), clock.RealClock{}.Now())
}

// AdjustCSIDriver sets preventPodSchedulingIfMissing and the rules for namespaces on one of Xylem's
// CSIDrivers, even if the installation created it instead of the manager.
func (r *Root) AdjustCSIDriver(ctx context.Context, by Actor, before, after *storagev1.CSIDriver) error {
	if !slices.Contains(nodes.Drivers(), before.Name) {
		return foreign(before, "it is not one of Xylem's CSIDrivers")
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
		return foreign(before, "Xylem may change only its rules for namespaces and preventPodSchedulingIfMissing")
	}
	return r.patch(ctx, by, before, after)
}

// RecordImport records on an admin's host PV which leaf PV it represents.
func (r *Root) RecordImport(ctx context.Context, by Actor, host, leaf *corev1.PersistentVolume, m mirror.Member) error {
	if name, asks := hostpv.ImportOfIn(host, m.ClusterID); !asks || name != leaf.Name {
		return foreign(host, "it does not request an unrecorded volume of this member")
	}
	return r.patch(ctx, by, host, hostpv.Recorded(host, leaf, m))
}

// FreePromise takes a promise from a member without writing to the member, so that another member
// can fulfill the promise. It removes the claim's placement first, and then changes the promise.
// Afterwards, any member can place the claim. claim is nil if it was deleted.
func (r *Root) FreePromise(ctx context.Context, by Actor, promise *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, clusterID string, evidence proof.Evidence) error {
	if err := coveredRoot(evidence, proof.DropVolume, promise); err != nil {
		return err
	}
	if after := hostpv.LeaveMember(claim, clusterID); after != nil {
		if err := r.AnnotateClaim(ctx, by, claim, after); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return r.patch(ctx, by, promise, hostpv.ReleasePromise(promise, claim, clusterID))
}

// Delete deletes an object that Xylem created, if it is unchanged since it was read. A changed object
// may no longer belong to Xylem, because any user with write access can take it over by removing
// Xylem's labels. Use DeleteVolume to delete a host PV.
func (r *Root) Delete(ctx context.Context, obj client.Object) error {
	if err := ownedRoot(obj); err != nil {
		return err
	}
	if _, volume := obj.(*corev1.PersistentVolume); volume {
		return fmt.Errorf("delete host PV %s without evidence: %w", obj.GetName(), proof.ErrUnproven)
	}
	return r.delete(ctx, obj, precondition.Unchanged(obj))
}

func ownedRoot(obj client.Object) error {
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		if pv.Spec.CSI != nil && pv.Spec.CSI.Driver == v1alpha1.ProvisionerName && pv.Labels[v1alpha1.LabelClusterID] != "" || hostpv.IsPromise(pv) {
			return nil
		}
		return foreign(obj, "it is neither a member's volume nor a promise")
	}
	if class, ok := obj.(*storagev1.StorageClass); ok && (!hostclass.Own(class) || !reflected(class)) {
		return foreign(obj, "it does not reflect a member's class")
	}
	if obj.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue {
		return nil
	}
	return foreign(obj, "it lacks the label "+v1alpha1.LabelManagedBy+"="+v1alpha1.ManagedByValue)
}

// reflected reports whether a class has labels for the registrations that offer it.
func reflected(class *storagev1.StorageClass) bool {
	for key := range class.Labels {
		if strings.HasPrefix(key, v1alpha1.LabelOfferedByPrefix) {
			return true
		}
	}
	return false
}
