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
	// look is the maximum interval between two checks, and lateness the part of After by which a check
	// may be late. Reports of other deletions can delay a report further (reportsAtOnce).
	look     = 15 * time.Second
	lateness = 4
	// reportsAtOnce is the maximum number of a member's deletions that one check reports. If
	// thousands are in progress, all are slow, and reporting each would slow them further. Those
	// that were not reported before come first, oldest first. All are counted.
	reportsAtOnce = 50
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
	Snapshots *route.Optional

	known map[types.UID]lastEvent
}

// lastEvent is the last event about a stuck deletion.
type lastEvent struct {
	cause account.Cause
	at    time.Time
}

// NeedLeaderElection returns true, so that each problem is reported only once.
func (w *Watcher) NeedLeaderElection() bool { return true }

// Start checks at intervals, and when there is a new member, until the context ends.
func (w *Watcher) Start(ctx context.Context) error {
	w.known = map[types.UID]lastEvent{}
	for {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "could not check for stuck deletions")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.Inventoried: // there may be a new member
		case <-w.Clock.After(min(look, w.After/lateness)):
		}
	}
}

func (w *Watcher) look(ctx context.Context) error {
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
		late, err := w.late(ctx, cr)
		if err != nil {
			return err
		}
		if there, err := index.Find[v1alpha1.ClusterRegistration](ctx, w.Client, index.Named(cr.Name)); err != nil || there == nil {
			continue // its state was dropped in the meantime
		}
		w.report(cr, late, still)
	}
	w.known = still
	return nil
}

// late returns a member's stuck deletions with their causes.
func (w *Watcher) late(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]candidate, error) {
	host, err := w.inHost(ctx, cr)
	if err != nil {
		return nil, err
	}
	var leaves []candidate
	explainer := w.Deletions.Explainer(cr.Name)
	if explainer != nil {
		deleting, err := explainer.Deleting(ctx)
		if err != nil {
			return nil, err
		}
		for _, d := range deleting {
			leaves = append(leaves, candidate{Deletion: d})
		}
	}
	late := overdue(host, leaves, w.Clock.Now(), w.After)
	for i := range late {
		if late[i].Cause == none {
			if late[i].Cause, err = w.cause(ctx, cr, explainer, late[i]); err != nil {
				return nil, err
			}
		}
		if err := w.waits(ctx, cr, explainer, &late[i]); err != nil {
			return nil, err
		}
	}
	return late, nil
}

// waits sets the claim or Pod that waits for a deletion in the member.
func (w *Watcher) waits(ctx context.Context, cr *v1alpha1.ClusterRegistration, explainer account.Explainer, c *candidate) error {
	kind, key, root := c.leafName()
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
	found, err := index.Get(ctx, w.Client, key, obj)
	// If only the earlier claim's volume still exists, no other claim waits for it.
	if found && awaits(obj, cr) && explainer.Explain(ctx, kind, key) != none {
		c.waits, c.own = obj, obj.GetUID() == root
	}
	return err
}

// inHost returns the deletions of host objects that concern a member.
func (w *Watcher) inHost(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]candidate, error) {
	ending, err := index.EndingIn(ctx, w.Client, cr.Status.ClusterID, cr.NodeName())
	if err != nil {
		return nil, err
	}
	var found []candidate
	add := func(kind string, obj client.Object, leaf string) {
		since := index.EndsSince(obj).Time
		found = append(found, candidate{Deletion: account.Deletion{Kind: kind, Key: client.ObjectKeyFromObject(obj), Since: since}, object: obj, leaf: leaf})
	}
	for i := range ending.Volumes {
		_, leaf, _, _ := hostpv.LeafOf(&ending.Volumes[i])
		add(kindVolume, &ending.Volumes[i], leaf)
	}
	for i := range ending.Claims {
		add(kindClaim, &ending.Claims[i], "")
	}
	for i := range ending.Pods {
		add(kindPod, &ending.Pods[i], "")
	}
	contents, err := w.endingContents(ctx, cr.Status.ClusterID)
	for i := range contents {
		add(kindContent, &contents[i], snapshot.LeafContent(&contents[i]))
	}
	return found, err
}

// cause returns why the deletion of a candidate is stuck.
func (w *Watcher) cause(ctx context.Context, cr *v1alpha1.ClusterRegistration, explainer account.Explainer, c candidate) (account.Cause, error) {
	if claim, ok := c.object.(*corev1.PersistentVolumeClaim); ok {
		if why, err := w.ofSnapshots(ctx, cr, claim); err != nil || why != none {
			return why, err
		}
		used, err := w.used(ctx, cr, explainer, c)
		if err != nil {
			return none, err
		}
		if why := waitsFor(claim, used); why != none {
			return why, nil
		}
	}
	if content, ok := c.object.(*snapshotv1.VolumeSnapshotContent); ok {
		if why, err := w.heldByRoot(ctx, content); err != nil || why != none {
			return why, err
		}
	}
	if why := away(cr); why != none {
		return why, nil
	}
	if why := inMember(ctx, explainer, c); why != none {
		why.Text = "in member " + strconv.Quote(cr.Name) + ", " + why.Text
		return why, nil
	}
	if c.object != nil {
		if why := waitsFor(c.object, none); why != none {
			return why, nil
		}
	}
	return because(account.CauseUnknown, "Xylem found no cause. Check the manager's log"), nil
}

// used returns how Pods block the deletion of a claim in the host, or none. If all of them are being
// deleted, the cause is that of the first Pod's deletion.
func (w *Watcher) used(ctx context.Context, cr *v1alpha1.ClusterRegistration, explainer account.Explainer, claim candidate) (account.Cause, error) {
	pods, err := index.PodsOfClaim(ctx, w.Client, claim.Key)
	if err != nil {
		return none, err
	}
	by := usersOf(pods, claim.Key)
	why := none
	if pod := by.first(); pod != nil && pod.Spec.NodeName == cr.NodeName() {
		why, err = w.cause(ctx, cr, explainer, candidate{Deletion: account.Deletion{Kind: kindPod, Key: client.ObjectKeyFromObject(pod)}, object: pod})
	} else if pod != nil {
		why = ofPod(pod, w.Clock.Now())
	}
	return by.used(why), err
}

// inMember returns the cause in the member: which leaf of the host object still exists, and why.
func inMember(ctx context.Context, explainer account.Explainer, c candidate) account.Cause {
	if explainer == nil {
		return none
	}
	switch obj := c.object.(type) {
	case *corev1.PersistentVolume:
		if ref := obj.Spec.ClaimRef; ref != nil {
			if why := explainer.Explain(ctx, kindClaim, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}); why != none {
				return why
			}
		}
		return explainer.Explain(ctx, kindVolume, types.NamespacedName{Name: c.leaf})
	case *corev1.Pod:
		return explainer.Explain(ctx, kindPod, c.Key)
	case *snapshotv1.VolumeSnapshotContent:
		return explainer.Explain(ctx, kindContent, types.NamespacedName{Name: c.leaf})
	}
	return none
}

// report records a member's stuck deletions, and emits an event on each object, and on each object
// that waits for one: when the cause changes, and again while it lasts.
func (w *Watcher) report(cr *v1alpha1.ClusterRegistration, late []candidate, still map[types.UID]lastEvent) {
	stuck := account.Stuck{Known: true, Count: len(late)}
	var age time.Duration
	if len(late) > 0 {
		oldest := late[0].Deletion
		stuck.Oldest, age = &oldest, w.Clock.Since(oldest.Since)
	}
	w.Deletions.SetStuck(cr.Name, stuck)
	account.CountStuck(cr.Name, len(late), age)
	var fresh, changed []notice
	for _, c := range late {
		// If there is no such object, the registration's condition reports the deletion.
		for _, n := range c.notices(cr.Name) {
			before, known := w.known[n.object.GetUID()]
			switch {
			case !known:
				fresh = append(fresh, n)
				continue
			case before.cause != n.cause, w.Clock.Since(before.at) >= news.Again:
				changed = append(changed, n)
			}
			still[n.object.GetUID()] = before
		}
	}
	due := slices.Concat(fresh, changed)
	for _, n := range due[:min(len(due), reportsAtOnce)] {
		w.eventStuck(n)
		still[n.object.GetUID()] = lastEvent{n.cause, w.Clock.Now()}
	}
}
