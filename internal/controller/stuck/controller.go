package stuck

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name = "stuck"
	// DefaultAfter is how long a deletion may take before it is reported. A provisioner retries
	// within about a minute. A Pod's grace period does not count, because its deletionTimestamp
	// is the time when that period ends.
	DefaultAfter = 2 * time.Minute
	// checkInterval is the maximum interval between two checks, and lateness the part of After by which a check
	// may be late. Reports of other deletions can delay a report further (maxReportsAtOnce).
	checkInterval   = 15 * time.Second
	latenessDivisor = 4
	// maxReportsAtOnce is the maximum number of a member's deletions that one check reports. If
	// thousands are in progress, all are slow, and reporting each would slow them further. Those
	// that were not reported before come first, oldest first. All are counted.
	maxReportsAtOnce = 50
)

// Watcher looks for stuck deletions at intervals, on the leader.
type Watcher struct {
	// Client reads the host's cache.
	Client client.Reader
	// Recorder emits events on the objects whose deletion is stuck.
	Recorder events.EventRecorder
	// Deletions receives the stuck deletions, and provides the members' explainers.
	Deletions *account.StuckDeletions
	// Inventoried has a token when a member's inventory of volumes has changed, such as a new member's first one.
	Inventoried <-chan struct{}
	// Clock is the real clock, except in tests.
	Clock clock.Clock
	// After is the time after which a deletion counts as stuck.
	After time.Duration
	// Snapshots reads the host's snapshots, if the host serves them.
	Snapshots *route.OptionalCache

	lastEvents map[types.UID]lastEvent
}

// lastEvent is the last event about a stuck deletion.
type lastEvent struct {
	cause account.DeletionCause
	at    time.Time
}

// NeedLeaderElection returns true, so that each problem is reported only once.
func (w *Watcher) NeedLeaderElection() bool { return true }

// Start checks at intervals, and when there is a new member, until the context ends.
func (w *Watcher) Start(ctx context.Context) error {
	w.lastEvents = map[types.UID]lastEvent{}
	for {
		if err := w.checkDeletions(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "could not check for stuck deletions")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.Inventoried: // there may be a new member
		case <-w.Clock.After(min(checkInterval, w.After/latenessDivisor)):
		}
	}
}

func (w *Watcher) checkDeletions(ctx context.Context) error {
	var list v1alpha1.ClusterRegistrationList
	if err := w.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("list registrations: %w", err)
	}
	still := map[types.UID]lastEvent{}
	for i := range list.Items {
		cr := &list.Items[i]
		if cr.Status.ClusterID == "" {
			continue
		}
		late, err := w.findStuckDeletions(ctx, cr)
		if err != nil {
			return err
		}
		if there, err := index.FindObject[v1alpha1.ClusterRegistration](ctx, w.Client, index.ClusterScopedKey(cr.Name)); err != nil || there == nil {
			continue // its state was dropped in the meantime
		}
		w.reportDeletions(cr, late, still)
	}
	w.lastEvents = still
	return nil
}

// findStuckDeletions returns a member's stuck deletions with their causes.
func (w *Watcher) findStuckDeletions(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]candidate, error) {
	host, err := w.deletionsInHost(ctx, cr)
	if err != nil {
		return nil, err
	}
	var leaves []candidate
	explainer := w.Deletions.ExplainerOf(cr.Name)
	if explainer != nil {
		deleting, err := explainer.ListDeletingLeaves(ctx)
		if err != nil {
			return nil, err
		}
		for _, d := range deleting {
			leaves = append(leaves, candidate{Deletion: d})
		}
	}
	late := overdueDeletions(host, leaves, w.Clock.Now(), w.After)
	for i := range late {
		if late[i].Cause == noCause {
			if late[i].Cause, err = w.causeOfDeletion(ctx, cr, explainer, late[i]); err != nil {
				return nil, err
			}
		}
		if err := w.setWaitingObject(ctx, cr, explainer, &late[i]); err != nil {
			return nil, err
		}
	}
	return late, nil
}

// setWaitingObject sets the claim or Pod that waits for a deletion in the member.
func (w *Watcher) setWaitingObject(ctx context.Context, cr *v1alpha1.ClusterRegistration, explainer account.DeletionExplainer, c *candidate) error {
	kind, key, root := c.remainingLeaf()
	var obj client.Object
	switch kind {
	case kindClaim:
		obj = &corev1.PersistentVolumeClaim{}
	case kindPod:
		obj = &corev1.Pod{}
	}
	if explainer == nil || obj == nil {
		return nil
	}
	found, err := index.GetIfExists(ctx, w.Client, key, obj)
	// If only the earlier claim's volume still exists, no other claim waits for it.
	if found && awaitsLeafIn(obj, cr) && explainer.ExplainDeletion(ctx, kind, key) != noCause {
		c.waitingObject, c.createdForWaiting = obj, obj.GetUID() == root
	}
	return err
}

// deletionsInHost returns the deletions of host objects that concern a member.
func (w *Watcher) deletionsInHost(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]candidate, error) {
	ending, err := index.EndingHostObjects(ctx, w.Client, cr.Status.ClusterID, cr.NodeName())
	if err != nil {
		return nil, err
	}
	var found []candidate
	add := func(kind string, obj client.Object, leaf string) {
		since := index.EndingSince(obj).Time
		found = append(found, candidate{Deletion: account.Deletion{Kind: kind, Key: client.ObjectKeyFromObject(obj), Since: since}, object: obj, leaf: leaf})
	}
	for i := range ending.Volumes {
		_, leaf, _, _ := hostpv.LeafOfHostVolume(&ending.Volumes[i])
		add(kindVolume, &ending.Volumes[i], leaf)
	}
	for i := range ending.Claims {
		add(kindClaim, &ending.Claims[i], "")
	}
	for i := range ending.Pods {
		add(kindPod, &ending.Pods[i], "")
	}
	contents, err := w.deletingContents(ctx, cr.Status.ClusterID)
	for i := range contents {
		add(kindContent, &contents[i], snapshot.LeafContentName(&contents[i]))
	}
	return found, err
}

// causeOfDeletion returns why the deletion of a candidate is stuck.
func (w *Watcher) causeOfDeletion(ctx context.Context, cr *v1alpha1.ClusterRegistration, explainer account.DeletionExplainer, c candidate) (account.DeletionCause, error) {
	if claim, ok := c.object.(*corev1.PersistentVolumeClaim); ok {
		if why, err := w.causeOfSnapshots(ctx, cr, claim); err != nil || why != noCause {
			return why, err
		}
		used, err := w.causeOfClaimUse(ctx, cr, explainer, c)
		if err != nil {
			return noCause, err
		}
		if why := causeOfFinalizers(claim, used); why != noCause {
			return why, nil
		}
	}
	if content, ok := c.object.(*snapshotv1.VolumeSnapshotContent); ok {
		if why, err := w.causeOfExistingRoot(ctx, content); err != nil || why != noCause {
			return why, err
		}
	}
	if why := causeOfAwayMember(cr); why != noCause {
		return why, nil
	}
	if why := causeInMember(ctx, explainer, c); why != noCause {
		why.Text = "in member " + strconv.Quote(cr.Name) + ", " + why.Text
		return why, nil
	}
	if c.object != nil {
		if why := causeOfFinalizers(c.object, noCause); why != noCause {
			return why, nil
		}
	}
	return formatCause(account.CauseUnknown, "Xylem found no cause. Check the manager's log"), nil
}

// causeOfClaimUse returns how Pods block the deletion of a claim in the host, or none. If all of them are being
// deleted, the cause is that of the first Pod's deletion.
func (w *Watcher) causeOfClaimUse(ctx context.Context, cr *v1alpha1.ClusterRegistration, explainer account.DeletionExplainer, claim candidate) (account.DeletionCause, error) {
	pods, err := index.PodsOfClaim(ctx, w.Client, claim.Key)
	if err != nil {
		return noCause, err
	}
	by := blockingPodsOf(pods, claim.Key)
	why := noCause
	if pod := by.firstEndingPod(); pod != nil && cr.HasNode(pod.Spec.NodeName) {
		why, err = w.causeOfDeletion(ctx, cr, explainer, candidate{Deletion: account.Deletion{Kind: kindPod, Key: client.ObjectKeyFromObject(pod)}, object: pod})
	} else if pod != nil {
		why = causeOfPodDeletion(pod, w.Clock.Now())
	}
	return by.causeOfUse(why), err
}

// causeInMember returns the cause in the member: which leaf of the host object still exists, and why.
func causeInMember(ctx context.Context, explainer account.DeletionExplainer, c candidate) account.DeletionCause {
	if explainer == nil {
		return noCause
	}
	switch obj := c.object.(type) {
	case *corev1.PersistentVolume:
		if ref := obj.Spec.ClaimRef; ref != nil {
			if why := explainer.ExplainDeletion(ctx, kindClaim, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}); why != noCause {
				return why
			}
		}
		return explainer.ExplainDeletion(ctx, kindVolume, types.NamespacedName{Name: c.leaf})
	case *corev1.Pod:
		return explainer.ExplainDeletion(ctx, kindPod, c.Key)
	case *snapshotv1.VolumeSnapshotContent:
		return explainer.ExplainDeletion(ctx, kindContent, types.NamespacedName{Name: c.leaf})
	}
	return noCause
}

// reportDeletions records a member's stuck deletions, and emits an event on each object, and on each object
// that waits for one: when the cause changes, and again while it lasts.
func (w *Watcher) reportDeletions(cr *v1alpha1.ClusterRegistration, late []candidate, still map[types.UID]lastEvent) {
	stuck := account.Stuck{Known: true, Count: len(late)}
	var age time.Duration
	if len(late) > 0 {
		oldest := late[0].Deletion
		stuck.Oldest, age = &oldest, w.Clock.Since(oldest.Since)
	}
	w.Deletions.SetStuckDeletions(cr.Name, stuck)
	account.SetStuckDeletionMetrics(cr.Name, len(late), age)
	var fresh, changed []eventNotice
	for _, c := range late {
		// If there is no such object, the registration's condition reports the deletion.
		for _, n := range c.eventNotices(cr.Name) {
			before, known := w.lastEvents[n.object.GetUID()]
			switch {
			case !known:
				fresh = append(fresh, n)
				continue
			case before.cause != n.cause, w.Clock.Since(before.at) >= news.RepeatInterval:
				changed = append(changed, n)
			}
			still[n.object.GetUID()] = before
		}
	}
	due := slices.Concat(fresh, changed)
	for _, n := range due[:min(len(due), maxReportsAtOnce)] {
		w.emitStuckDeletion(n)
		still[n.object.GetUID()] = lastEvent{n.cause, w.Clock.Now()}
	}
}
