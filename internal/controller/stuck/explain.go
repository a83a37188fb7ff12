package stuck

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/wording"
)

// explainer determines from a member's caches why an object there has not been deleted yet.
type explainer struct{ *member.Link }

// Setup registers the explainer for a member's deletions until its link ends.
func Setup(link *member.Link, deletions *account.StuckDeletions) error {
	link.AddRunnable(func(ctx context.Context) error {
		deletions.RegisterExplainer(ctx, link.Registration, &explainer{link})
		<-ctx.Done()
		return nil
	})
	return nil
}

// ListDeletingLeaves implements account.DeletionExplainer.
func (e *explainer) ListDeletingLeaves(ctx context.Context) ([]account.Deletion, error) {
	ending, err := index.EndingLeafObjects(ctx, e.Cache)
	if err != nil {
		return nil, fmt.Errorf("list the deletions in member %q: %w", e.Registration, err)
	}
	var found []account.Deletion
	add := func(kind string, obj client.Object) {
		if at := obj.GetDeletionTimestamp(); at != nil { // a released volume is reported only through its root
			key := client.ObjectKeyFromObject(obj)
			found = append(found, account.Deletion{Kind: kind, Key: key, InMember: true, RootUID: mirror.StampedRootUID(obj), Since: at.Time, Cause: e.ExplainDeletion(ctx, kind, key)})
		}
	}
	for i := range ending.Claims {
		add(kindClaim, &ending.Claims[i])
	}
	for i := range ending.Pods {
		add(kindPod, &ending.Pods[i])
	}
	for i := range ending.Volumes {
		if _, ours := mirror.LeafOriginFromHost(e.HostID, &ending.Volumes[i]); ours {
			add(kindVolume, &ending.Volumes[i])
		}
	}
	return found, nil
}

// ExplainDeletion implements account.DeletionExplainer.
func (e *explainer) ExplainDeletion(ctx context.Context, kind string, key types.NamespacedName) account.DeletionCause {
	var why account.DeletionCause
	var err error
	switch kind {
	case kindClaim:
		why, _, err = e.explainClaim(ctx, key)
	case kindVolume:
		why, err = e.explainVolume(ctx, key.Name)
	case kindPod:
		why, err = e.explainPod(ctx, key)
	case kindContent:
		why, err = e.explainContent(ctx, key.Name)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not find out why a deletion is stuck", "cluster", e.Registration, "leaf", key.String())
	}
	return why
}

// explainClaim explains why a leaf claim still exists. It returns false if this host has no such leaf claim.
func (e *explainer) explainClaim(ctx context.Context, key types.NamespacedName) (account.DeletionCause, bool, error) {
	claim, _, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, e.Cache, e.HostID, key)
	if err != nil || claim == nil {
		return noCause, false, err
	}
	if claim.DeletionTimestamp == nil {
		return noCause, true, nil
	}
	var pods corev1.PodList
	if err := e.Cache.List(ctx, &pods, client.InNamespace(key.Namespace), index.ReadOnly); err != nil {
		return noCause, true, fmt.Errorf("list the Pods that use claim %s: %w", key, err)
	}
	by := blockingPodsOf(pods.Items, key)
	ending := noCause
	if pod := by.firstEndingPod(); pod != nil {
		ending = causeOfPodDeletion(pod, e.Clock.Now())
	}
	if why := causeOfFinalizers(claim, by.causeOfUse(ending)); why != noCause {
		return formatCause(why.Kind, "claim %q is %s", key, why.Text), true, nil
	}
	return formatCause(account.CausePending, "claim %q is being deleted", key), true, nil
}

// explainVolume explains why a leaf PV still exists, from its status and its provisioner's events.
func (e *explainer) explainVolume(ctx context.Context, name string) (account.DeletionCause, error) {
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, e.Cache, index.ClusterScopedKey(name))
	if err != nil || pv == nil {
		return noCause, err
	}
	kept, err := e.snapshotsOfVolume(ctx, pv)
	if err != nil {
		return noCause, err
	}
	message := pv.Status.Message
	if message == "" {
		if message, err = e.latestWarning(ctx, pv); err != nil {
			return noCause, err
		}
	}
	switch {
	case message != "" && len(kept) > 0:
		return formatCause(account.CauseSnapshots, "the driver did not delete volume %q, which has snapshots (%s): %s. Delete these snapshots if the driver requires it", name, wording.FirstNames(kept, wording.NamesListed, ", "), message), nil
	case message != "":
		return formatCause(account.CauseProvisioner, "the driver did not delete volume %q: %s", name, message), nil
	case pv.DeletionTimestamp != nil:
		if why := causeOfFinalizers(pv, noCause); why != noCause {
			return formatCause(why.Kind, "volume %q is %s", name, why.Text), nil
		}
	case pv.Status.Phase == corev1.VolumeBound, pv.Status.Phase == corev1.VolumeAvailable, pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain:
		return e.explainUnreleased(ctx, pv)
	}
	return formatCause(account.CausePending, "volume %q still exists (%s, policy %s), and its provisioner reports nothing. Check that the provisioner is running", name, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy), nil
}

// explainUnreleased explains why a leaf PV is not released for its provisioner to delete.
func (e *explainer) explainUnreleased(ctx context.Context, pv *corev1.PersistentVolume) (account.DeletionCause, error) {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return causeOfUnreleased(pv, false), nil
	}
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	why, ours, err := e.explainClaim(ctx, key)
	if err != nil || why != noCause {
		return why, err
	}
	return causeOfUnreleased(pv, ours), nil
}

// causeOfUnreleased explains why a leaf PV is not released. ours reports whether its claimRef names a leaf
// claim of this host.
func causeOfUnreleased(pv *corev1.PersistentVolume, ours bool) account.DeletionCause {
	switch {
	case pv.Status.Phase == corev1.VolumeAvailable:
		return formatCause(account.CausePending, "volume %q has no claimRef, or a claimRef without a uid, so its provisioner does not delete it, and another claim may be bound to it. "+
			"If nobody needs the data, set the volume's spec.claimRef to the namespace and name of a claim that does not exist, with any uid", pv.Name)
	case pv.Status.Phase == corev1.VolumeBound && pv.Spec.ClaimRef != nil && !ours:
		return formatCause(account.CausePending, "volume %q is bound to claim \"%s/%s\", which Xylem did not create, or which has lost Xylem's labels and annotations, so Xylem does not delete that claim. Delete it if nobody needs its data",
			pv.Name, pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
	}
	return formatCause(account.CausePending, "volume %q still exists (%s, policy %s): Xylem's deletion has no effect in the member yet. Check whether an admission policy or webhook of the member rejects or undoes it; an event on the claim has the member's response",
		pv.Name, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy)
}

// latestWarning returns the latest warning event about a leaf PV.
func (e *explainer) latestWarning(ctx context.Context, pv *corev1.PersistentVolume) (string, error) {
	events, err := index.LeafEventsOf(ctx, e.Cache, metav1.NamespaceAll, pv.UID)
	if err != nil {
		return "", err
	}
	if event := latestEvent(events, kindVolume, pv.Name); event != nil {
		return event.Message, nil
	}
	return "", nil
}

// latestEvent returns the latest of the events about an object, or nil.
func latestEvent(events []corev1.Event, kind, name string) *corev1.Event {
	var found *corev1.Event
	for i := range events {
		event := &events[i]
		about := event.InvolvedObject.Kind == kind && event.InvolvedObject.Name == name
		if about && (found == nil || found.LastTimestamp.Before(&event.LastTimestamp)) {
			found = event
		}
	}
	return found
}

func (e *explainer) explainPod(ctx context.Context, key types.NamespacedName) (account.DeletionCause, error) {
	pod, _, err := index.FindStamped[corev1.Pod](ctx, e.Cache, e.HostID, key)
	if err != nil || pod == nil {
		return noCause, err
	}
	if pod.DeletionTimestamp == nil && causeOfFinalizers(pod, noCause) == noCause {
		return formatCause(account.CausePending, "Pod %q is not being deleted yet", key), nil
	}
	return causeOfPodDeletion(pod, e.Clock.Now()), nil
}
