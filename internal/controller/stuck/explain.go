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
	"github.com/xylem-io/xylem/internal/text"
)

// explainer determines from a member's caches why an object there has not been deleted yet.
type explainer struct{ *member.Link }

// Setup registers the explainer for a member's deletions until its link ends.
func Setup(link *member.Link, deletions *account.StuckDeletions) error {
	link.Run(func(ctx context.Context) error {
		deletions.Explain(ctx, link.Registration, &explainer{link})
		<-ctx.Done()
		return nil
	})
	return nil
}

// Deleting implements account.Explainer.
func (e *explainer) Deleting(ctx context.Context) ([]account.Deletion, error) {
	ending, err := index.EndingLeaves(ctx, e.Cache)
	if err != nil {
		return nil, fmt.Errorf("list the deletions in member %q: %w", e.Registration, err)
	}
	var found []account.Deletion
	add := func(kind string, obj client.Object) {
		if at := obj.GetDeletionTimestamp(); at != nil { // a released volume is reported only through its root
			key := client.ObjectKeyFromObject(obj)
			found = append(found, account.Deletion{Kind: kind, Key: key, Member: true, Root: mirror.RootUID(obj), Since: at.Time, Cause: e.Explain(ctx, kind, key)})
		}
	}
	for i := range ending.Claims {
		add(kindClaim, &ending.Claims[i])
	}
	for i := range ending.Pods {
		add(kindPod, &ending.Pods[i])
	}
	for i := range ending.Volumes {
		if _, ours := mirror.OriginIn(e.HostID, &ending.Volumes[i]); ours {
			add(kindVolume, &ending.Volumes[i])
		}
	}
	return found, nil
}

// Explain implements account.Explainer.
func (e *explainer) Explain(ctx context.Context, kind string, key types.NamespacedName) account.Cause {
	var why account.Cause
	var err error
	switch kind {
	case kindClaim:
		why, _, err = e.claim(ctx, key)
	case kindVolume:
		why, err = e.volume(ctx, key.Name)
	case kindPod:
		why, err = e.pod(ctx, key)
	case kindContent:
		why, err = e.content(ctx, key.Name)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not find out why a deletion is stuck", "cluster", e.Registration, "leaf", key.String())
	}
	return why
}

// claim explains why a leaf claim still exists. It returns false if this host has no such leaf claim.
func (e *explainer) claim(ctx context.Context, key types.NamespacedName) (account.Cause, bool, error) {
	claim, _, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, e.Cache, e.HostID, key)
	if err != nil || claim == nil {
		return none, false, err
	}
	if claim.DeletionTimestamp == nil {
		return none, true, nil
	}
	var pods corev1.PodList
	if err := e.Cache.List(ctx, &pods, client.InNamespace(key.Namespace), index.ReadOnly); err != nil {
		return none, true, fmt.Errorf("list the Pods that use claim %s: %w", key, err)
	}
	by := usersOf(pods.Items, key)
	ending := none
	if pod := by.first(); pod != nil {
		ending = ofPod(pod, e.Clock.Now())
	}
	if why := waitsFor(claim, by.used(ending)); why != none {
		return because(why.Kind, "claim %q is %s", key, why.Text), true, nil
	}
	return because(account.CausePending, "claim %q is being deleted", key), true, nil
}

// volume explains why a leaf PV still exists, from its status and its provisioner's events.
func (e *explainer) volume(ctx context.Context, name string) (account.Cause, error) {
	pv, err := index.Find[corev1.PersistentVolume](ctx, e.Cache, index.Named(name))
	if err != nil || pv == nil {
		return none, err
	}
	kept, err := e.snapshotsOf(ctx, pv)
	if err != nil {
		return none, err
	}
	message := pv.Status.Message
	if message == "" {
		if message, err = e.warning(ctx, pv); err != nil {
			return none, err
		}
	}
	switch {
	case message != "" && len(kept) > 0:
		return because(account.CauseSnapshots, "the driver did not delete volume %q, which has snapshots (%s): %s. Delete these snapshots if the driver requires it", name, text.FirstNames(kept, text.NamesListed, ", "), message), nil
	case message != "":
		return because(account.CauseProvisioner, "the driver did not delete volume %q: %s", name, message), nil
	case pv.DeletionTimestamp != nil:
		if why := waitsFor(pv, none); why != none {
			return because(why.Kind, "volume %q is %s", name, why.Text), nil
		}
	case pv.Status.Phase == corev1.VolumeBound, pv.Status.Phase == corev1.VolumeAvailable, pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain:
		return e.unreleased(ctx, pv)
	}
	return because(account.CausePending, "volume %q still exists (%s, policy %s), and its provisioner reports nothing. Check that the provisioner is running", name, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy), nil
}

// unreleased explains why a leaf PV is not released for its provisioner to delete.
func (e *explainer) unreleased(ctx context.Context, pv *corev1.PersistentVolume) (account.Cause, error) {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return ofUnreleased(pv, false), nil
	}
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	why, ours, err := e.claim(ctx, key)
	if err != nil || why != none {
		return why, err
	}
	return ofUnreleased(pv, ours), nil
}

// ofUnreleased explains why a leaf PV is not released. ours reports whether its claimRef names a leaf
// claim of this host.
func ofUnreleased(pv *corev1.PersistentVolume, ours bool) account.Cause {
	switch {
	case pv.Status.Phase == corev1.VolumeAvailable:
		return because(account.CausePending, "volume %q has no claimRef, or a claimRef without a uid, so its provisioner does not delete it, and another claim may be bound to it. "+
			"If nobody needs the data, set the volume's spec.claimRef to the namespace and name of a claim that does not exist, with any uid", pv.Name)
	case pv.Status.Phase == corev1.VolumeBound && pv.Spec.ClaimRef != nil && !ours:
		return because(account.CausePending, "volume %q is bound to claim \"%s/%s\", which Xylem did not create, or which has lost Xylem's labels and annotations, so Xylem does not delete that claim. Delete it if nobody needs its data",
			pv.Name, pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
	}
	return because(account.CausePending, "volume %q still exists (%s, policy %s): Xylem's deletion has no effect in the member yet. Check whether an admission policy or webhook of the member rejects or undoes it; an event on the claim has the member's response",
		pv.Name, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy)
}

// warning returns the latest warning event about a leaf PV.
func (e *explainer) warning(ctx context.Context, pv *corev1.PersistentVolume) (string, error) {
	events, err := index.EventsOf(ctx, e.Cache, metav1.NamespaceAll, pv.UID)
	if err != nil {
		return "", err
	}
	if event := latest(events, kindVolume, pv.Name); event != nil {
		return event.Message, nil
	}
	return "", nil
}

// latest returns the latest of the events about an object, or nil.
func latest(events []corev1.Event, kind, name string) *corev1.Event {
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

func (e *explainer) pod(ctx context.Context, key types.NamespacedName) (account.Cause, error) {
	pod, _, err := index.Leaf[corev1.Pod](ctx, e.Cache, e.HostID, key)
	if err != nil || pod == nil {
		return none, err
	}
	if pod.DeletionTimestamp == nil && waitsFor(pod, none) == none {
		return because(account.CausePending, "Pod %q is not being deleted yet", key), nil
	}
	return ofPod(pod, e.Clock.Now()), nil
}
