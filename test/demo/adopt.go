package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// Names for the volume that existed in a member before Xylem. archiveApp is the name of the claim
// on both sides and of the host PV.
const (
	legacySpace = "legacy"
	archiveApp  = "archive"
	// archiveClass is one of several host classes that map to the volume's class, so runAdopt must
	// name it.
	archiveClass = "openebs-hostpath"
)

// archiveData is the content of the volume.
const archiveData = "written before Xylem"

// adopt shows how the host uses a volume that existed in a member before Xylem.
func (d *demo) adopt(ctx context.Context) error {
	d.out.section("Adoption: the host uses a disk that a member had before Xylem")
	volume, err := d.leaveVolume(ctx)
	if err != nil {
		return err
	}
	if err := d.runAdopt(ctx, volume); err != nil {
		return err
	}
	d.out.line("   (the Pod prefers %s)", spare)
	if _, err := d.scene(ctx, true, apply("archive.yaml"),
		d.claimBound(d.host, space, archiveApp), d.claimBound(d.members[0], space, archiveApp), d.podRunning(d.host, space, archiveApp)); err != nil {
		return err
	}
	d.checks.equal("adoption: the Pod runs in the member that has the disk", pinned, d.placeOf(archiveApp), "although "+spare+" was preferred")
	return d.checkAdopted(volume)
}

// leaveVolume creates an unclaimed volume with data in the first member and returns its name.
func (d *demo) leaveVolume(ctx context.Context) (string, error) {
	m := d.members[0]
	if err := d.do(ctx, m, apply("legacy.yaml")...); err != nil {
		return "", err
	}
	bound := d.claimBound(m, legacySpace, archiveApp)
	if err := d.await(ctx, bound.expected, func(context.Context) (string, error) { return bound.lacking() }); err != nil {
		return "", err
	}
	volume := m.claim(legacySpace, archiveApp).Spec.VolumeName
	id, err := m.diskOfVolume(volume)
	if err != nil {
		return "", err
	}
	if err := m.WriteData(id, archiveData); err != nil {
		return "", err
	}
	d.out.line("   the disk of %s/%s in %s now contains: %s", legacySpace, archiveApp, pinned, archiveData)
	d.out.line("   (deleting its claim keeps the volume: policy Retain)")
	if err := d.do(ctx, m, "patch", "pv", volume, "-p", `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`); err != nil {
		return "", err
	}
	if err := d.do(ctx, m, "delete", "namespace", legacySpace, "--wait=false"); err != nil {
		return "", err
	}
	return volume, d.await(ctx, "volume "+volume+" Released", func(context.Context) (string, error) {
		pv := m.volume(volume)
		switch {
		case pv == nil:
			return "it does not exist", nil
		case pv.Status.Phase != corev1.VolumeReleased || m.claim(legacySpace, archiveApp) != nil:
			return "it is " + string(pv.Status.Phase), nil
		default:
			return "", nil
		}
	})
}

// runAdopt runs kubectl xylem adopt, first with --dry-run.
func (d *demo) runAdopt(ctx context.Context, volume string) error {
	for _, dry := range []bool{true, false} {
		args := []string{
			"xylem", "adopt", pinned, volume, "--member-context", pinned,
			"--name", archiveApp, "--claim", space + "/" + archiveApp, "--class", archiveClass,
		}
		if dry {
			args = append(args, "--dry-run")
		}
		d.prompt(d.host, args...)
		out, err := d.kubectl(ctx, d.host, args...)
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			d.out.line("   %s", strings.TrimRight(line, "\n"))
		}
		_, err = d.kubectl(ctx, d.host, "get", "pv", archiveApp)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		check := "adoption: the dry run changes nothing"
		if !dry {
			check = "adoption: the host has a volume that represents the disk"
		}
		d.checks.equal(check, dry, err != nil, "")
	}
	return nil
}

// checkAdopted checks that the claim in the host uses the disk with its data, and that no other
// disk was created for it.
func (d *demo) checkAdopted(volume string) error {
	m := d.members[0]
	leaf := m.claim(space, archiveApp)
	if leaf == nil {
		return &unmet{"claim " + archiveApp + " in " + m.Name(), "it does not exist"}
	}
	d.checks.equal("adoption: the claim is bound to this volume in "+pinned, volume, leaf.Spec.VolumeName, shortVolume(volume))
	counts, err := d.countCalls(ledger.CreateVolume, archiveApp)
	if err != nil {
		return err
	}
	none := fmt.Sprintf("0 in %s, 0 in %s", pinned, spare)
	d.checks.equal("adoption: no disk was created", none, counts, none)
	data, err := d.readDisk(m, archiveApp)
	if err != nil {
		return err
	}
	d.checks.equal("adoption: the disk still has its data", archiveData, data, data)
	return nil
}
