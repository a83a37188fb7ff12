package leafpod

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
)

// unmet is a claim bound to a promise that this member has and cannot keep. The Pod
// is bound before the disk exists, so that no scheduler is asked again: only another
// Pod can go elsewhere.
type unmet struct {
	claim   *corev1.PersistentVolumeClaim
	problem *mirror.Refusal
	// timeout of the promise's class; until when the member has time.
	timeout time.Duration
	until   time.Time
	// others are the cluster IDs of the other members that could take the Pod.
	others []string
}

// cut is what a time loses at most by being written in whole seconds.
const cut = time.Second

func (o observed) overdue() bool {
	return o.unmet != nil && !o.now.Before(o.unmet.until) && !podstatus.Finished(o.root) && o.root.DeletionTimestamp == nil
}

// again is when the Pod is to be examined again; 0 for when something changes.
func (o observed) again() time.Duration {
	if o.unmet == nil {
		return 0
	}
	return max(0, o.unmet.until.Sub(o.now))
}

// giveUp fails the Pod. root_pod takes its leaf back, and root_pvc the leaf claim.
func (o observed) giveUp() decision {
	claim := o.unmet.claim.Name
	return fail{unmet: claim, status: podstatus.Failed(o.root, v1alpha1.ReasonPlacementFailed, fmt.Sprintf(
		"the member does not provision the disk of claim %q: %s. Xylem fails this Pod, so that its owner replaces it and the scheduler can choose another member", claim, o.unmet.problem.Message))}
}

// unmetOf looks up the promise that keeps a Pod here waiting and that the member
// cannot keep, if the Pod has an owner that makes it again. As long as it may run
// nowhere else, it has time. Each Pod has the whole timeout from when it was created.
func (r *reconciler) unmetOf(ctx context.Context, root *corev1.Pod) (*unmet, error) {
	if root.Spec.NodeName != r.NodeName || podstatus.Finished(root) || root.DeletionTimestamp != nil || metav1.GetControllerOf(root) == nil {
		return nil, nil
	}
	for p, err := range r.bound(ctx, root) {
		if err != nil {
			return nil, err
		}
		if !hostpv.IsUnfulfilled(p.volume) || !hostpv.IsPromiseIn(p.volume, r.ClusterID) {
			continue
		}
		if u := unmetBy(p.claim, p.volume, root, r.Member); u != nil {
			if u.others, err = r.elsewhere(ctx, root); err != nil {
				return nil, err
			}
			if len(u.others) == 0 {
				u.until = later(u.until, r.Clock.Now().Add(u.timeout)) // no Node's event brings us back
			}
			return u, nil
		}
	}
	return nil, nil
}

// unmetBy reads what root_pvc says of a claim.
func unmetBy(claim *corev1.PersistentVolumeClaim, promise *corev1.PersistentVolume, root *corev1.Pod, m mirror.Member) *unmet {
	class, err := hostclass.Read(hostpv.PromiseClass(promise))
	if err != nil {
		return nil // host_class reports why
	}
	problem, since := report.FailedIn(claim, m.ClusterID)
	if problem == nil {
		return nil
	}
	u := &unmet{claim: claim, problem: problem, timeout: class.PlacementTimeout}
	u.until = later(since, root.CreationTimestamp.Time).Add(class.PlacementTimeout + cut)
	if !u.told(root, m) {
		u.until = later(u.until, time.Unix(report.TriedOf(claim).Until, 0))
	}
	return u
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// told reports whether the claim says already that Pods of this one's age are given
// up here: those that were created before all go at once, and also if the manager ends
// between that record and the Pod's status.
func (u *unmet) told(root *corev1.Pod, m mirror.Member) bool {
	tried := report.TriedOf(u.claim)
	return tried.Has(m.ClusterID) && root.CreationTimestamp.Unix() < tried.Moved
}

// tried is what the claim is to say when a Pod is given up here; false if it says
// so. A round ends with the last other member, and also when the scheduler has
// chosen this one again: the pause after it, which doubles, bounds how many Pods an
// owner makes in vain.
func (u *unmet) tried(root *corev1.Pod, m mirror.Member, now time.Time) (report.Tried, bool) {
	if u.told(root, m) {
		return report.Tried{}, false
	}
	tried := report.TriedOf(u.claim).Begin(now)
	again := tried.Has(m.ClusterID)
	tried = tried.With(m, u.problem)
	tried.Moved = now.Unix()
	if again || !slices.ContainsFunc(u.others, func(id string) bool { return !tried.Has(id) }) {
		tried = tried.End(now, u.timeout)
	}
	return tried, true
}

// note records on the claim that the Pod is given up here.
func (r *reconciler) note(ctx context.Context, o observed) error {
	tried, news := o.unmet.tried(o.root, r.Member, o.now)
	if !news {
		return nil
	}
	text, err := tried.Annotation()
	if err != nil {
		return err
	}
	after := o.unmet.claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationTried, text)
	return r.Root.AnnotateClaim(ctx, actor, o.unmet.claim, after)
}

// elsewhere are the cluster IDs of the other members that could take the Pod, all its
// claims included: without one, making it again is no use.
func (r *reconciler) elsewhere(ctx context.Context, root *corev1.Pod) ([]string, error) {
	members, err := index.Members(ctx, r.Host)
	if err != nil {
		return nil, err
	}
	needs, err := r.needs(ctx, root)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, m := range members {
		if m.ClusterID != r.ClusterID && m.MayRun(*root) &&
			!slices.ContainsFunc(needs, func(q placement.Request) bool { return !m.Answer(q).Allowed() }) {
			others = append(others, m.ClusterID)
		}
	}
	return others, nil
}

// needs are what the Pod's claims need of a member: the volumes that they have, and the
// disks that they are promised.
func (r *reconciler) needs(ctx context.Context, root *corev1.Pod) ([]placement.Request, error) {
	needs := []placement.Request{{Namespace: root.Namespace}}
	for p, err := range r.bound(ctx, root) {
		if err != nil {
			return nil, err
		}
		need := placement.Request{Namespace: root.Namespace, Volume: p.volume}
		if hostpv.IsUnfulfilled(p.volume) {
			present, err := index.Find[storagev1.StorageClass](ctx, r.Host, index.Named(p.volume.Spec.StorageClassName))
			if err != nil {
				return nil, err
			}
			need.Class = placement.PromisedClass(p.volume, present)
		}
		needs = append(needs, need)
	}
	return needs, nil
}

// ofUnmet enqueues the Pods here that wait for a promise which cannot be kept.
func (r *reconciler) ofUnmet(ctx context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || !hostpv.NamesPromise(claim.Spec.VolumeName) || report.ClaimProblem(claim, v1alpha1.ClaimPlaced) == nil {
		return nil
	}
	return r.podsHere(ctx, client.ObjectKeyFromObject(claim))
}
