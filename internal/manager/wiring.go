package manager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/controller/awaymember"
	"github.com/xylem-io/xylem/internal/controller/capacity"
	"github.com/xylem-io/xylem/internal/controller/clusterregistration"
	"github.com/xylem-io/xylem/internal/controller/hostclaim"
	"github.com/xylem-io/xylem/internal/controller/hostsnapshot"
	"github.com/xylem-io/xylem/internal/controller/hostvolume"
	"github.com/xylem-io/xylem/internal/controller/leafbudget"
	"github.com/xylem-io/xylem/internal/controller/leafevent"
	"github.com/xylem-io/xylem/internal/controller/leafnamespace"
	"github.com/xylem-io/xylem/internal/controller/leafpod"
	"github.com/xylem-io/xylem/internal/controller/leafpv"
	"github.com/xylem-io/xylem/internal/controller/leafpvc"
	"github.com/xylem-io/xylem/internal/controller/leafsnapshot"
	"github.com/xylem-io/xylem/internal/controller/membertoken"
	"github.com/xylem-io/xylem/internal/controller/orphan"
	"github.com/xylem-io/xylem/internal/controller/promise"
	"github.com/xylem-io/xylem/internal/controller/recovery"
	"github.com/xylem-io/xylem/internal/controller/reflectedclass"
	"github.com/xylem-io/xylem/internal/controller/rootconfig"
	"github.com/xylem-io/xylem/internal/controller/rootpod"
	"github.com/xylem-io/xylem/internal/controller/rootpv"
	"github.com/xylem-io/xylem/internal/controller/rootpvc"
	"github.com/xylem-io/xylem/internal/controller/rootservice"
	"github.com/xylem-io/xylem/internal/controller/rootsnapshot"
	"github.com/xylem-io/xylem/internal/controller/source"
	"github.com/xylem-io/xylem/internal/controller/stuck"
	"github.com/xylem-io/xylem/internal/controller/virtualnode"
	"github.com/xylem-io/xylem/internal/controller/waitingpod"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/nodeapi"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/reflection"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/sharing"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// syncTimeout bounds the initial sync of a member's caches. 50,000 volumes take a few seconds.
const syncTimeout = 2 * time.Minute

// wiring contains the controllers' dependencies.
type wiring struct {
	mgr             ctrl.Manager
	client          client.Client // reads from the cache, and reports rejected writes
	live            client.Client
	heartbeatClient client.Client // for the heartbeat, which runs on every replica
	checkLeading    func() error
	revision        *fencing.RevisionMonitor
	host            hostIdentity
	options         Options
	router          *route.Router
	identity        string
	orphans         *account.OrphanTracker
	stuck           *account.StuckDeletions
	mirrorTracker   *account.MirrorTracker
	latency         *account.ProvisioningLatency
	backlog         *backlog.Queue
	classes         *reflection.MemberClasses
	// snapshots are the host's snapshots, if the host serves them.
	snapshots     *route.OptionalCache
	clock         clock.Clock
	nodeAPIConfig *rest.Config // for the node API
	nodeAPI       *nodeapi.Server
	// records stores what Xylem releases in members. add creates it.
	records *fencing.HostRecords
	// otherMembers returns the other members in the fleet. add sets it when it creates the fleet.
	otherMembers func(context.Context, mirror.Member) ([]proof.OtherMember, error)
	inventories  orphan.InventorySlots
}

// newEventRecorder returns the recorder for events on host objects.
func (w *wiring) newEventRecorder() events.EventRecorder {
	return guarded.WrapRecorder(w.mgr.GetEventRecorder(userAgent))
}

// addHostControllers adds the host's controllers, and the fleet, which runs the members' controllers.
func (w *wiring) addHostControllers() error {
	w.client = guarded.NewHostReporter(w.mgr.GetClient(), w.newEventRecorder(), w.clock, guarded.UnansweredPatience(w.options.FenceDuration))
	if err := w.mgr.Add(w.revision); err != nil {
		return fmt.Errorf("add the monitor of the host's revision: %w", err)
	}
	if err := w.mgr.Add(w.backlog); err != nil {
		return fmt.Errorf("add the queue of claims: %w", err)
	}
	if err := w.mgr.Add(ctrlmanager.RunnableFunc(w.watchSnapshotsOnceServed)); err != nil {
		return fmt.Errorf("add the check whether the host serves snapshots: %w", err)
	}
	w.records = &fencing.HostRecords{Live: w.live, Namespace: w.options.Namespace, Clock: clock.RealClock{}}
	caBundle, err := hostCABundle(w.mgr.GetConfig())
	if err != nil {
		return err
	}
	registrations := &clusterregistration.Reconciler{
		Client: w.client, Live: w.live, Router: w.router, Recorder: w.newEventRecorder(), Records: w.records,
		HostID: w.host.id, Namespace: w.options.Namespace, Orphans: w.orphans, Stuck: w.stuck, Classes: w.classes, Clock: clock.RealClock{}, Snapshots: w.snapshots,
		HostCABundle: caBundle, HostShowsPodResources: isAtLeast(w.host.version, podResizeSince),
		ReportPlaced: rootpvc.SetPlacedOfLeaving,
	}
	fleet := w.newFleet(registrations.AdmitMember)
	w.otherMembers = fleet.OtherMembers
	registrations.Fleet = fleet
	if err := w.mgr.Add(fleet); err != nil {
		return fmt.Errorf("add the fleet: %w", err)
	}
	if err := registrations.SetupWithManager(w.mgr, fleet); err != nil {
		return fmt.Errorf("add controller %s: %w", "cluster_registration", err)
	}
	port, err := w.addNodeAPI(fleet)
	if err != nil {
		return err
	}
	recorder := w.newEventRecorder()
	for name, c := range map[string]interface{ SetupWithManager(ctrl.Manager) error }{
		virtualnode.Name: &virtualnode.Reconciler{
			Client: w.client, Live: w.live, Fleet: fleet, Recorder: recorder, PodIP: w.options.NodeAPIHost, Port: port,
			Grace: w.options.NodeGrace, Recheck: w.options.RecheckInterval, DeclaresFeatures: isAtLeast(w.host.version, podResizeSince),
		},
		virtualnode.DriverName:    &virtualnode.DriverReconciler{Client: w.client, Recorder: recorder},
		hostclaim.Name:            &hostclaim.Reconciler{Client: w.client, Live: w.live, Recorder: recorder, Namespace: w.options.Namespace, Classes: w.classes, Snapshots: w.snapshots, Clock: clock.RealClock{}},
		awaymember.PodName:        &awaymember.PodReconciler{Client: w.client, Fleet: fleet, Recorder: recorder, Clock: clock.RealClock{}},
		awaymember.AttachmentName: &awaymember.AttachmentReconciler{Client: w.client, Fleet: fleet, Clock: clock.RealClock{}},
		waitingpod.Name:           &waitingpod.Reconciler{Client: w.client, Recorder: recorder, Namespace: w.options.Namespace, Classes: w.classes, Clock: clock.RealClock{}},
		promise.Name:              &promise.Reconciler{Client: w.client, Recorder: recorder, Clock: clock.RealClock{}},
		reflectedclass.Name:       &reflectedclass.Reconciler{Client: w.client, Recorder: recorder, Classes: w.classes},
		source.Name:               &source.Reconciler{Client: w.client, Namespace: w.options.Namespace, Snapshots: w.snapshots},
		hostsnapshot.Name:         &hostsnapshot.Reconciler{Client: w.client, Live: w.live, Snapshots: w.snapshots, Recorder: recorder, Records: w.records, Clock: clock.RealClock{}},
		hostvolume.Name:           &hostvolume.Reconciler{Client: w.client, Live: w.live, Recorder: recorder, Records: w.records},
		virtualnode.HeartbeatName: &virtualnode.Heartbeat{Cache: w.mgr.GetCache(), Live: w.heartbeatClient, Identity: w.identity},
	} {
		if err := c.SetupWithManager(w.mgr); err != nil {
			return fmt.Errorf("add controller %s: %w", name, err)
		}
	}
	if err := w.mgr.Add(&stuck.Watcher{
		Client: w.client, Recorder: recorder, Deletions: w.stuck, Inventoried: w.orphans.FactsChanged(), Clock: clock.RealClock{}, After: w.options.StuckAfter, Snapshots: w.snapshots,
	}); err != nil {
		return fmt.Errorf("add controller %s: %w", stuck.Name, err)
	}
	if err := metrics.Registry.Register(account.HostCounts{Host: w.mgr.GetCache(), Elected: w.mgr.Elected()}); err != nil {
		return fmt.Errorf("register the metrics that count the host's objects: %w", err)
	}
	return nil
}

// addMemberControllers adds the controllers of one member to its link.
func (w *wiring) addMemberControllers(_ context.Context, link *member.Link) error {
	sizes, sharer := &account.RejectedSizes{}, sharing.New(link)
	volumes := observe.Options{Orphans: w.orphans, SchedulerNominates: w.options.SchedulerNominates(w.host.version), SilentAfter: w.options.SilentAfter, UnusedPromises: observe.NewUnusedPromises()}
	for _, setup := range []func(*member.Link) error{
		leafnamespace.SetupWithLink,
		func(link *member.Link) error {
			return capacity.SetupWithLink(link, capacity.Options{Namespace: w.options.Namespace, Exhausted: sizes})
		},
		func(link *member.Link) error { return reflectedclass.Setup(link, w.classes) },
		func(link *member.Link) error {
			return rootconfig.Setup(link, rootconfig.Options{RenewAfter: w.options.RenewTokensAfter})
		},
		rootservice.Setup,
		func(link *member.Link) error {
			return rootpvc.Setup(link, rootpvc.Options{Options: volumes, Namespace: w.options.Namespace, Mirrors: w.mirrorTracker, Latency: w.latency, Backlog: w.backlog, OtherMembers: w.otherMembers})
		},
		func(link *member.Link) error {
			return rootpod.Setup(link, rootpod.Options{SchedulerNominates: w.options.SchedulerNominates(w.host.version), Mirrors: w.mirrorTracker, Sharer: sharer})
		},
		func(link *member.Link) error {
			return recovery.Setup(link, recovery.Options{Namespace: w.options.Namespace, SchedulerNominates: w.options.SchedulerNominates(w.host.version), Exhausted: sizes})
		},
		func(link *member.Link) error { return rootpv.Setup(link, volumes, w.records) },
		func(link *member.Link) error { return rootpv.SetupShared(link, sharer) },
		func(link *member.Link) error {
			return rootsnapshot.Setup(link, w.records)
		},
		func(link *member.Link) error {
			return leafsnapshot.Setup(link, leafsnapshot.Options{Orphans: w.orphans, SilentAfter: w.options.SilentAfter})
		},
		leafpod.SetupWithLink,
		leafbudget.Setup,
		func(link *member.Link) error { return leafpvc.SetupWithLink(link, leafpvc.Options{Latency: w.latency}) },
		func(link *member.Link) error {
			return leafpv.Setup(link, leafpv.Options{Options: volumes, Mirrors: w.mirrorTracker})
		},
		func(link *member.Link) error {
			return orphan.Setup(link, orphan.Options{Orphans: w.orphans, Interval: w.options.OrphanInterval, Namespace: w.options.Namespace, Slots: w.inventories})
		},
		func(link *member.Link) error { return stuck.Setup(link, w.stuck) },
		virtualnode.SetupCapacity,
		leafevent.SetupWithLink,
		func(link *member.Link) error {
			if w.nodeAPI == nil {
				return nil
			}
			return w.nodeAPI.SetupWithLink(link)
		},
		func(link *member.Link) error {
			return membertoken.Setup(link, membertoken.Options{Namespace: w.options.Namespace, RenewAfter: w.options.RenewTokensAfter})
		},
	} {
		if err := setup(link); err != nil {
			return err
		}
	}
	return nil
}
