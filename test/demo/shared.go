package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

const (
	sharedApp     = "files"
	sharedBackend = "shelf"
)

// share makes both members share a backend, and runs a Pod with the same claim in each of them.
func (d *demo) share(ctx context.Context) error {
	d.out.section("One volume in both members, which share a storage backend")
	const role = "config/member/shared/role.yaml"
	content, err := os.ReadFile(filepath.Join(d.root, role))
	if err != nil {
		return fmt.Errorf("read the role: %w", err)
	}
	granted, err := d.write("shared.yaml", []byte(strings.ReplaceAll(string(content), "driver.example.com", controlplane.DefaultDriverName)))
	if err != nil {
		return err
	}
	d.out.line("   (shared.yaml is %s with the driver's name)", role)
	for _, m := range d.members {
		if err := d.do(ctx, m, "apply", "-f", granted); err != nil {
			return err
		}
		if err := d.do(ctx, d.host, "patch", "clusterregistration", m.Name(), "--type=merge", "-p",
			fmt.Sprintf(`{"spec":{"storage":{"shared":[{"name":%q,"driver":%q,"classes":[%q]}]}}}`, sharedBackend, controlplane.DefaultDriverName, controlplane.ClassHostpath)); err != nil {
			return err
		}
	}
	for _, m := range d.members {
		if _, err := d.kubectl(ctx, d.host, "wait", "clusterregistration/"+m.Name(), "--for=condition=Ready", "--timeout=60s"); err != nil {
			return err
		}
	}
	if _, err := d.scene(ctx, true, apply(sharedApp+".yaml"), d.claimBound(d.host, space, sharedApp), d.podRunning(d.host, space, sharedApp)); err != nil {
		return err
	}
	d.out.line("   (the second Pod must be in the other member)")
	requests, err := d.scene(ctx, false, []string{"-n", space, "scale", "deployment/" + sharedApp, "--replicas=2"}, d.replicasRunning(sharedApp, len(d.members)))
	if err != nil {
		return err
	}
	d.spend("a copy and its Pod", requests)
	for _, m := range d.members {
		if err := d.printTable(ctx, m, "get", "pvc", sharedApp, "-n", space, "-o", "custom-columns=CLAIM:.metadata.name,STATUS:.status.phase,VOLUME:.spec.volumeName"); err != nil {
			return err
		}
	}
	return d.checkShared(ctx)
}

// checkShared checks that the volume was provisioned once, and deletes it.
func (d *demo) checkShared(ctx context.Context) error {
	where, err := d.disksOf(sharedApp)
	if err != nil {
		return err
	}
	total := 0
	var handles []string
	for _, m := range d.members {
		book, err := m.Ledger()
		if err != nil {
			return err
		}
		total += book.ForClaim(space, sharedApp).Count(ledger.CreateVolume)
		volume, err := d.kubectl(ctx, m, "get", "pvc", sharedApp, "-n", space, "-o", "jsonpath={.spec.volumeName}")
		if err != nil {
			return err
		}
		handle, err := d.kubectl(ctx, m, "get", "pv", volume, "-o", "jsonpath={.spec.csi.volumeHandle}")
		if err != nil {
			return err
		}
		handles = append(handles, handle)
	}
	d.checks.equal("shared volume: provisioned once, for Pods in both members", 1, total, "one disk, in "+where+"; Pods in "+d.placeOf(sharedApp))
	d.checks.equal("shared volume: both members use the same disk", handles[0], handles[1], "the same volume handle")
	return d.clear(ctx, sharedApp, "shared volume: the copy is removed, then the disk is deleted with its claim")
}

// replicasRunning is met when this number of an application's Pods is running in the host.
func (d *demo) replicasRunning(app string, want int) condition {
	running := d.podRunning(d.host, space, app)
	lacking := running.lacking
	running.lacking = func() (string, error) {
		if n := len(d.host.labelled(space, "app", app)); n != want {
			return fmt.Sprintf("there are %d", n), nil
		}
		return lacking()
	}
	return running
}
