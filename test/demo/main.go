package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/controlplane/kubelet"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// sections is the number of sections that the demo prints.
const sections = 20

// exitVariable is the environment variable that makes the demo end after its checks.
const exitVariable = "DEMO_EXIT"

// Exit codes.
const (
	exitFailed      = 1
	exitInterrupted = 130
)

// demo is one run of the demo.
type demo struct {
	out      *console
	root     string // path of the repository
	dir      string // data, logs and kubeconfigs of this run
	x        *harness.Xylem
	host     *view
	members  []*view
	timeline *timeline
	checks   checks
	figures  figures
	// start is the position in each audit log before the manager started.
	start marks
}

// views returns the host and the members in the order of the timeline's columns.
func (d *demo) views() []*view { return append([]*view{d.host}, d.members...) }

func main() {
	// Disable the logs of clients and caches.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	giveBack := takeForeground(os.Stdin)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	out, err := newConsole(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(exitFailed)
	}
	d := &demo{out: out}
	err = d.run(ctx)
	told := ctx.Err() != nil
	stop()
	giveBack()
	switch {
	case err != nil && !told:
		os.Exit(exitFailed)
	case told && !d.checks.complete:
		os.Exit(exitInterrupted)
	case !d.checks.passed():
		os.Exit(exitFailed)
	}
}

// run starts everything, runs the scenes, and stops everything.
func (d *demo) run(ctx context.Context) (err error) {
	begin := time.Now()
	if d.root, err = kubebin.Root(); err != nil {
		return d.report(ctx, err)
	}
	if d.dir, err = os.MkdirTemp("", "xylem-demo-"); err != nil {
		return d.report(ctx, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	group, background := errgroup.WithContext(ctx)
	defer func() {
		cancel(nil)
		err = errors.Join(err, group.Wait())
		err = errors.Join(err, d.end(context.WithoutCancel(ctx)))
	}()
	if err := d.startClusters(ctx); err != nil {
		return d.report(ctx, err)
	}
	if err := d.look(background, group); err != nil {
		return d.report(ctx, err)
	}
	for _, step := range []func(context.Context) error{
		d.install,
		func(ctx context.Context) error { return d.startManager(ctx, cancel) },
		d.register, d.nginx, d.reach, d.showTables, d.reserved, d.snapshot, d.restore, d.clone, d.forget, d.share, d.move, d.statefulSet, d.grow, d.native, d.remove,
		d.promise, d.full, d.failing, d.adopt, d.audit, d.runPasted,
	} {
		if err = step(ctx); err != nil {
			err = d.report(ctx, err)
			break
		}
	}
	if !interrupted(ctx) {
		d.summary(time.Since(begin), err == nil)
	}
	if d.out.terminal && os.Getenv(exitVariable) == "" && ctx.Err() == nil {
		d.lookAround(ctx)
	}
	return err
}

// interrupted reports whether the user interrupted the run, as opposed to an error.
func interrupted(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), context.Canceled)
}

// startClusters starts the host and the members.
func (d *demo) startClusters(ctx context.Context) error {
	d.out.line("%s", d.out.style(bold, "Xylem: one PersistentVolumeClaim, several clusters."))
	d.out.line("You apply a claim and its Pod in a host cluster. The Pod runs, and the disk is")
	d.out.line("provisioned, in a member cluster, which the host sees as a node. The host shows")
	d.out.line("the real state of both.")
	d.out.line("The control planes, schedulers and CSI calls are real and run on loopback.")
	d.out.line("The containers are simulated: KWOK reports them as running. No image is pulled.")
	d.out.section("Starting a host and two members, each with its own control plane")
	program := filepath.Join(d.root, "bin", "manager")
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("there is no bin/manager: run make demo, which builds it: %w", err)
	}
	nodeAPI, err := harness.FreeAddress(ctx)
	if err != nil {
		return err
	}
	members := make([]controlplane.ClusterOptions, 0, 2)
	for _, name := range []string{pinned, spare} {
		k := kubelet.New(func() *controlplane.Cluster { return d.x.Fleet.Member(name) })
		context.AfterFunc(ctx, k.Close)
		members = append(members, controlplane.ClusterOptions{Name: name, Kubelets: true, Kubelet: k.Address()})
	}
	d.x, err = harness.Start(ctx, harness.Options{
		Host: controlplane.ClusterOptions{Kubelets: true}, Snapshots: true,
		Members: members,
		Dir:     filepath.Join(d.dir, "clusters"), Bare: true, Manager: program,
		FenceDuration: harness.ShippedFence, ProbeInterval: harness.ShippedProbe,
		ManagerArgs: []string{"--leader-elect", "--node-api-bind-address=" + nodeAPI, "--node-api-advertise-address=127.0.0.1"},
		Progress:    func(format string, args ...any) { d.out.line("   "+format, args...) },
	})
	if err != nil {
		return err
	}
	d.out.line("   kubectl's contexts: %s (the current one), %s and %s", d.x.Host.Name(), pinned, spare)
	return d.x.Fleet.WriteKubeconfig(d.kubeconfig())
}

// look starts watching all clusters.
func (d *demo) look(ctx context.Context, group *errgroup.Group) error {
	clusters := d.x.Fleet.Clusters()
	d.timeline = &timeline{out: d.out}
	names := map[string]string{}
	for _, c := range clusters {
		id, err := c.ID(ctx)
		if err != nil {
			return err
		}
		names[id] = c.Name()
		d.timeline.columns = append(d.timeline.columns, c.Name())
	}
	for i, c := range clusters {
		v, err := observe(ctx, c, i, d.timeline, names)
		if err != nil {
			return err
		}
		if i == 0 {
			d.host = v
			continue
		}
		d.members = append(d.members, v)
		group.Go(func() error { return v.follow(ctx, d.timeline) })
	}
	group.Go(func() error {
		ticker := time.NewTicker(showEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case now := <-ticker.C:
				d.timeline.show(now)
			}
		}
	})
	return d.checkVersions(ctx)
}

// end stops the manager and the clusters, and removes their data unless a check failed.
func (d *demo) end(ctx context.Context) error {
	var errs []error
	if d.x != nil {
		if d.x.Manager != nil {
			errs = append(errs, d.x.Manager.Stop())
		}
		errs = append(errs, d.x.Stop(ctx))
	}
	if d.checks.failed() {
		d.out.line("Data and logs are left in %s", d.dir)
	} else {
		errs = append(errs, os.RemoveAll(d.dir))
	}
	if err := errors.Join(errs...); err != nil {
		d.out.line("Stopping the demo failed: %v", err)
		return err
	}
	return nil
}

// file returns the path of a file in this run's directory.
func (d *demo) file(name string) string { return filepath.Join(d.dir, name) }

// write writes a file in this run's directory, and returns its path.
func (d *demo) write(name string, content []byte) (string, error) {
	path := d.file(name)
	if err := os.WriteFile(path, content, 0o600); err != nil { //nolint:gosec // Below the demo's own directory.
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return path, nil
}
