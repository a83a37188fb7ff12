package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// Names of the copies of the example's claim: a snapshot, a claim that is restored from the
// snapshot, and a clone.
const (
	snapshotName = "monday"
	restoredApp  = "restored"
	cloneApp     = "copy"
)

// Data that the demo writes to the disk of the example's claim, before and after the snapshot.
const (
	mondayData  = "written on Monday"
	tuesdayData = "written on Tuesday"
)

// snapshot writes to the example's disk, takes a snapshot of the claim, and overwrites the disk.
func (d *demo) snapshot(ctx context.Context) error {
	d.out.section("Taking a snapshot, in the member that has the disk")
	d.out.line("   (containers are simulated, so the demo itself writes to the disk's directory)")
	if err := d.do(ctx, d.host, "apply", "-f", manifests+"snapshot-class.yaml"); err != nil {
		return err
	}
	if err := d.writeDisk(d.members[0], nginxClaim, mondayData); err != nil {
		return err
	}
	requests, err := d.scene(ctx, false, apply("snapshot.yaml"), d.snapshotReady(d.host), d.snapshotReady(d.members[0]))
	if err != nil {
		return err
	}
	d.spend("a snapshot", requests)
	for _, v := range []*view{d.host, d.members[0]} {
		if err := d.printColumns(ctx, v, []string{"NAME", "READYTOUSE", "SOURCEPVC", "RESTORESIZE", "SNAPSHOTCLASS"},
			"get", "volumesnapshots", "-n", space); err != nil {
			return err
		}
	}
	if err := d.checkSnapshot(ctx); err != nil {
		return err
	}
	return d.writeDisk(d.members[0], nginxClaim, tuesdayData)
}

// checkSnapshot checks that the snapshot was taken once, and that no action in the member alone can
// destroy it.
func (d *demo) checkSnapshot(ctx context.Context) error {
	counts, err := d.countCalls(ledger.CreateSnapshot, nginxClaim)
	if err != nil {
		return err
	}
	want := fmt.Sprintf("1 in %s, 0 in %s", pinned, spare)
	d.checks.equal("snapshot: taken once, in the member that has the disk", want, counts, want)
	policy, err := d.kubectl(ctx, d.members[0], "get", "volumesnapshotcontents", "-o", "jsonpath={.items[*].spec.deletionPolicy}")
	if err != nil {
		return err
	}
	d.checks.equal("snapshot: policy Retain in the member while it is used", "Retain", policy, "the class in the host has Delete")
	return nil
}

// restore creates a claim from the snapshot.
func (d *demo) restore(ctx context.Context) error {
	d.out.section("Restoring it, in the only member that has the snapshot")
	return d.copied(ctx, "restore", restoredApp, mondayData)
}

// clone creates a claim from the example's claim.
func (d *demo) clone(ctx context.Context) error {
	d.out.section("Cloning a claim: only the member that has its disk can copy it")
	return d.copied(ctx, "clone", cloneApp, tuesdayData)
}

// copied applies a claim with a source, and a Pod that prefers a member other than the source's. It
// checks where the disk is, and that the disk has the source's data.
func (d *demo) copied(ctx context.Context, what, app, want string) error {
	d.out.line("   (the Pod prefers %s)", spare)
	requests, err := d.scene(ctx, false, apply(app+".yaml"), d.claimBound(d.host, space, app), d.podRunning(d.host, space, app))
	if err != nil {
		return err
	}
	d.spend("a "+what+" and its Pod", requests)
	where, err := d.disksOf(app)
	if err != nil {
		return err
	}
	d.checks.equal(what+": in the member that has the data, not where the Pod prefers", pinned, where, "in "+where+", although "+spare+" was preferred")
	data, err := d.readDisk(d.members[0], app)
	if err != nil {
		return err
	}
	d.checks.equal(what+": the disk has the data of its source", want, data, data)
	return nil
}

// forget deletes the snapshot, and then the restored claim and the clone.
func (d *demo) forget(ctx context.Context) error {
	d.out.section("Deleting the snapshot; the restored claim keeps its disk")
	command := []string{"-n", space, "delete", "--wait=false", "volumesnapshot/" + snapshotName}
	requests, err := d.scene(ctx, true, command, d.snapshotGone(d.host), d.snapshotGone(d.members[0]), d.noSnapshots())
	if err != nil {
		return err
	}
	d.spend("a snapshot's deletion", requests)
	counts, err := d.countCalls(ledger.DeleteSnapshot, nginxClaim)
	if err != nil {
		return err
	}
	d.checks.equal("snapshot: deleted once, with its VolumeSnapshot", fmt.Sprintf("1 in %s, 0 in %s", pinned, spare), counts, counts)
	data, err := d.readDisk(d.members[0], restoredApp)
	if err != nil {
		return err
	}
	d.checks.equal("restore: its disk outlives the snapshot", mondayData, data, data)
	if err := d.clear(ctx, restoredApp, "restore: the disk is deleted with its claim"); err != nil {
		return err
	}
	return d.clear(ctx, cloneApp, "clone: the disk is deleted with its claim")
}

// writeDisk overwrites the data on a claim's disk in a member.
func (d *demo) writeDisk(m *view, claim, data string) error {
	id, err := d.diskID(m, claim)
	if err != nil {
		return err
	}
	if err := m.WriteData(id, data); err != nil {
		return err
	}
	d.out.line("   the disk of %s in %s now contains: %s", claim, m.Name(), data)
	return nil
}

// readDisk returns and prints the data on a claim's disk in a member.
func (d *demo) readDisk(m *view, claim string) (string, error) {
	id, err := d.diskID(m, claim)
	if err != nil {
		return "", err
	}
	data, err := m.ReadData(id)
	if err == nil {
		d.out.line("   the disk of %s in %s contains: %s", claim, m.Name(), data)
	}
	return data, err
}

// countCalls counts the calls of a method for a claim, in each member's driver.
func (d *demo) countCalls(method, claim string) (string, error) {
	var counts []string
	for _, m := range d.members {
		book, err := m.Ledger()
		if err != nil {
			return "", err
		}
		counts = append(counts, fmt.Sprintf("%d in %s", book.ForClaim(space, claim).Count(method), m.Name()))
	}
	return strings.Join(counts, ", "), nil
}

// snapshotReady is met when a cluster reports that the snapshot can be restored.
func (d *demo) snapshotReady(v *view) condition {
	return condition{"snapshot " + snapshotName + " ready in " + v.Name(), func() (string, error) {
		switch snapshot := v.snapshot(space, snapshotName); {
		case snapshot == nil:
			return "it does not exist", nil
		case snapshotFails(snapshot) != "":
			return snapshotFails(snapshot), nil
		case !isReady(snapshot):
			return "it is not ready", nil
		default:
			return "", nil
		}
	}}
}

// snapshotGone is met when a cluster no longer has the snapshot.
func (d *demo) snapshotGone(v *view) condition {
	return condition{"snapshot " + snapshotName + " gone in " + v.Name(), func() (string, error) {
		if v.snapshot(space, snapshotName) != nil {
			return "it still exists", nil
		}
		return "", nil
	}}
}

// noSnapshots is met when no member's driver has a snapshot.
func (d *demo) noSnapshots() condition {
	return condition{"the snapshot's data deleted", func() (string, error) {
		for _, m := range d.members {
			book, err := m.Ledger()
			if err != nil {
				return "", err
			}
			if n := len(book.LiveSnapshots()); n > 0 {
				return fmt.Sprintf("the driver of %s has %d", m.Name(), n), nil
			}
		}
		return "", nil
	}}
}

// spend records the requests that Xylem made to each cluster for an operation.
func (d *demo) spend(what string, requests []controlplane.Requests) {
	d.figures.copies = append(d.figures.copies, spending{what, requests})
}
