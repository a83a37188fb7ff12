package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// crdName is kubectl's name for the ClusterRegistration CRD.
const crdName = "crd/clusterregistrations.cluster.xylem.io"

// checkVersions prints the versions, and checks that the clusters run the stock kube-scheduler.
func (d *demo) checkVersions(ctx context.Context) error {
	info, err := d.host.Client().Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("read the host's version: %w", err)
	}
	bin, err := kubebin.Dir(d.root)
	if err != nil {
		return err
	}
	scheduler := filepath.Join(bin, kubebin.Scheduler)
	out, err := exec.CommandContext(ctx, scheduler, "--version").Output() //nolint:gosec // The program that was built.
	if err != nil {
		return fmt.Errorf("read kube-scheduler's version: %w", err)
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "Kubernetes ")
	d.figures.scheduler = "stock kube-scheduler " + version
	d.out.line("   Kubernetes %s; every scheduler is the %s; the host has one plain node, %s",
		info.GitVersion, d.figures.scheduler, strings.Join(d.host.NodeNames(), ", "))
	d.checks.equal("clusters: three control planes run the stock scheduler", info.GitVersion, version, d.figures.scheduler)
	return nil
}

// install applies the manifests in the host and in the members.
func (d *demo) install(ctx context.Context) error {
	d.out.section("Installing Xylem in all clusters; the manager is a local process")
	d.out.line("   (test/demo/host is config/default without the manager's Deployment)")
	if err := d.do(ctx, d.host, "apply", "--server-side", "-k", "test/demo/host"); err != nil {
		return err
	}
	if _, err := d.kubectl(ctx, d.host, "wait", "--for=condition=Established", "--timeout=60s", crdName); err != nil {
		return err
	}
	parts := append([]string{"config/member"}, reachParts...)
	for _, part := range parts {
		d.prompt(d.members[0], "apply", "-k", part)
	}
	d.out.line("   (only the first is required; the demo applies all of them in %s too)", d.members[1].Name())
	return d.busy("kubectl apply", func() error {
		group, ctx := errgroup.WithContext(ctx)
		for _, m := range d.members {
			group.Go(func() error {
				for _, part := range parts {
					if _, err := d.kubectl(ctx, m, "apply", "-k", part); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return group.Wait()
	})
}

// startManager starts bin/manager with the permissions of its service account.
func (d *demo) startManager(ctx context.Context, cancel context.CancelCauseFunc) error {
	var err error
	if d.start, err = d.mark(ctx); err != nil {
		return err
	}
	if err := d.busy("starting bin/manager", func() error { return d.x.RunManager(ctx) }); err != nil {
		return err
	}
	go func() {
		select {
		case <-ctx.Done():
		case <-d.x.Manager.Done():
			cancel(&died{d.x.Manager.Err()})
		}
	}()
	d.out.line("   bin/manager runs as %s (process %d), and is not cluster-admin", harness.HostUser, d.x.Manager.PID())
	d.out.line("   its log: %s", d.x.Manager.LogPath())
	return nil
}

// died is the context's cause if the manager exits unexpectedly. It ends all waits.
type died struct{ err error }

func (e *died) Error() string { return fmt.Sprintf("the manager exited unexpectedly: %v", e.err) }
