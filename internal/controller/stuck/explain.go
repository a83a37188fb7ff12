package stuck

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

// explainer tells from a member's caches why something there does not go.
type explainer struct{ *member.Link }

// Setup lets a member's deletions be explained while its link lives.
func Setup(link *member.Link, book *account.Book) error {
	link.Run(func(ctx context.Context) error {
		book.Explain(ctx, link.Registration, &explainer{link})
		<-ctx.Done()
		return nil
	})
	return nil
}

// Deleting implements account.Explainer.
func (e *explainer) Deleting(ctx context.Context) ([]account.Deletion, error) {
	var found []account.Deletion
	add := func(kind string, obj client.Object) {
		if at := obj.GetDeletionTimestamp(); at != nil {
			key := client.ObjectKeyFromObject(obj)
			found = append(found, account.Deletion{Kind: kind, Key: key, Member: true, Since: at.Time, Cause: e.Explain(ctx, kind, key)})
		}
	}
	var claims corev1.PersistentVolumeClaimList
	var pods corev1.PodList
	var volumes corev1.PersistentVolumeList
	for _, list := range []client.ObjectList{&claims, &pods, &volumes} {
		if err := index.EndingLeaves(ctx, e.Cache, list); err != nil {
			return nil, fmt.Errorf("list what is being deleted in member %s: %w", e.Registration, err)
		}
	}
	for i := range claims.Items {
		add(kindClaim, &claims.Items[i])
	}
	for i := range pods.Items {
		add(kindPod, &pods.Items[i])
	}
	for i := range volumes.Items {
		if _, ours := mirror.OriginIn(e.HostID, &volumes.Items[i]); ours {
			add(kindVolume, &volumes.Items[i])
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
		why, err = e.claim(ctx, key)
	case kindVolume:
		why, err = e.volume(ctx, key.Name)
	case kindPod:
		why, err = e.pod(ctx, key)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find out why something is not deleted", "cluster", e.Registration, "leaf", key.String())
	}
	return why
}

func (e *explainer) claim(ctx context.Context, key types.NamespacedName) (account.Cause, error) {
	claim, _, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, e.Cache, e.HostID, key)
	if err != nil || claim == nil || claim.DeletionTimestamp == nil {
		return none, err
	}
	var pods corev1.PodList
	if err := e.Cache.List(ctx, &pods, client.InNamespace(key.Namespace)); err != nil {
		return none, fmt.Errorf("list the Pods that use claim %s: %w", key, err)
	}
	if why := waitsFor(claim, users(pods.Items, key)); why != none {
		return because(why.Kind, "claim %s waits: %s", key, why.Text), nil
	}
	return because(account.CausePending, "claim %s is being deleted", key), nil
}

// volume explains a leaf PV by what its provisioner says.
func (e *explainer) volume(ctx context.Context, name string) (account.Cause, error) {
	pv, err := index.Find[corev1.PersistentVolume](ctx, e.Cache, index.Named(name))
	if err != nil || pv == nil {
		return none, err
	}
	said := pv.Status.Message
	if said == "" {
		if said, err = e.warning(ctx, pv); err != nil {
			return none, err
		}
	}
	switch {
	case said != "":
		return because(account.CauseProvisioner, "volume %s is not destroyed: %s", name, said), nil
	case pv.DeletionTimestamp != nil:
		if why := waitsFor(pv, nil); why != none {
			return because(why.Kind, "volume %s waits: %s", name, why.Text), nil
		}
	}
	return because(account.CausePending, "volume %s is still there (%s, policy %s), and its provisioner says nothing", name, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy), nil
}

// warning is the latest warning about a leaf PV.
func (e *explainer) warning(ctx context.Context, pv *corev1.PersistentVolume) (string, error) {
	var events corev1.EventList
	if err := e.Cache.List(ctx, &events); err != nil {
		return "", fmt.Errorf("list the warnings about volume %s: %w", pv.Name, err)
	}
	var latest *corev1.Event
	for i := range events.Items {
		event := &events.Items[i]
		about := event.InvolvedObject.Kind == kindVolume && event.InvolvedObject.Name == pv.Name && event.InvolvedObject.UID == pv.UID
		if about && (latest == nil || latest.LastTimestamp.Before(&event.LastTimestamp)) {
			latest = event
		}
	}
	if latest == nil {
		return "", nil
	}
	return latest.Message, nil
}

func (e *explainer) pod(ctx context.Context, key types.NamespacedName) (account.Cause, error) {
	pod, _, err := index.Leaf[corev1.Pod](ctx, e.Cache, e.HostID, key)
	if err != nil || pod == nil {
		return none, err
	}
	if why := waitsFor(pod, nil); why != none {
		return because(why.Kind, "Pod %s waits: %s", key, why.Text), nil
	}
	if pod.DeletionTimestamp == nil {
		return because(account.CausePending, "Pod %s is not being deleted yet", key), nil
	}
	return because(account.CausePending, "Pod %s is not ended yet by the kubelet of node %s", key, pod.Spec.NodeName), nil
}
