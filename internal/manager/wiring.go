package manager

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/controller/capacity"
	"github.com/xylem-io/xylem/internal/controller/clusterregistration"
	"github.com/xylem-io/xylem/internal/controller/csidriver"
	"github.com/xylem-io/xylem/internal/controller/heartbeat"
	"github.com/xylem-io/xylem/internal/controller/hostclaim"
	"github.com/xylem-io/xylem/internal/controller/leafevent"
	"github.com/xylem-io/xylem/internal/controller/leafnamespace"
	"github.com/xylem-io/xylem/internal/controller/leafnode"
	"github.com/xylem-io/xylem/internal/controller/leafpod"
	"github.com/xylem-io/xylem/internal/controller/leafpv"
	"github.com/xylem-io/xylem/internal/controller/leafpvc"
	"github.com/xylem-io/xylem/internal/controller/rootconfig"
	"github.com/xylem-io/xylem/internal/controller/rootpod"
	"github.com/xylem-io/xylem/internal/controller/rootpv"
	"github.com/xylem-io/xylem/internal/controller/rootpvc"
	"github.com/xylem-io/xylem/internal/controller/virtualnode"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/route"
)

// syncTimeout bounds the first fill of a member's caches: 50,000 volumes take a
// few seconds, a member that hangs takes no more than this.
const syncTimeout = 2 * time.Minute

// wiring is what controllers are made of.
type wiring struct {
	mgr      ctrl.Manager
	live     client.Client
	host     hostID
	options  Options
	router   *route.Router
	identity string
}

// recorder of events on objects of the host.
func (w *wiring) recorder() events.EventRecorder {
	return guarded.Recorder(w.mgr.GetEventRecorder(userAgent))
}

// add adds the host's controllers, and the fleet that runs the members'.
func (w *wiring) add() error {
	registrations := &clusterregistration.Reconciler{
		Client: w.mgr.GetClient(), Live: w.live, Recorder: w.recorder(),
		HostID: w.host.id, Namespace: w.options.Namespace,
	}
	fleet := w.fleet(registrations.Admit)
	registrations.Fleet = fleet
	if err := w.mgr.Add(fleet); err != nil {
		return fmt.Errorf("add the fleet: %w", err)
	}
	if err := registrations.SetupWithManager(w.mgr, fleet); err != nil {
		return fmt.Errorf("add controller cluster_registration: %w", err)
	}
	nodes := &virtualnode.Reconciler{
		Client: w.mgr.GetClient(), Live: w.live, Fleet: fleet, Recorder: w.recorder(), PodIP: os.Getenv("POD_IP"),
		Grace: w.options.NodeGrace,
	}
	if err := nodes.SetupWithManager(w.mgr); err != nil {
		return fmt.Errorf("add controller %s: %w", virtualnode.Name, err)
	}
	driver := &csidriver.Reconciler{Client: w.mgr.GetClient(), Recorder: w.recorder()}
	if err := driver.SetupWithManager(w.mgr); err != nil {
		return fmt.Errorf("add controller %s: %w", csidriver.Name, err)
	}
	claims := &hostclaim.Reconciler{
		Client: w.mgr.GetClient(), Live: w.live, Recorder: w.recorder(), Namespace: w.options.Namespace, Clock: clock.RealClock{},
	}
	if err := claims.SetupWithManager(w.mgr); err != nil {
		return fmt.Errorf("add controller %s: %w", hostclaim.Name, err)
	}
	beat := &heartbeat.Heartbeat{Client: w.mgr.GetClient(), Live: w.live, Identity: w.identity}
	return beat.SetupWithManager(w.mgr)
}

// session adds the controllers of one member to its link.
func (w *wiring) session(_ context.Context, link *member.Link) error {
	for _, setup := range []func(*member.Link) error{
		leafnamespace.Setup,
		func(link *member.Link) error { return capacity.Setup(link, w.options.Namespace) },
		rootconfig.Setup,
		rootpvc.Setup,
		func(link *member.Link) error {
			return rootpod.Setup(link, rootpod.Options{NominatedNode: w.nominates()})
		},
		rootpv.Setup,
		leafpod.Setup,
		leafpvc.Setup,
		leafpv.Setup,
		leafnode.Setup,
		leafevent.Setup,
	} {
		if err := setup(link); err != nil {
			return err
		}
	}
	return nil
}
