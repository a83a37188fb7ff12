package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// Names in the manifests. A claim, its Deployment and its Pods' label share one name.
const (
	manifests    = "test/demo/manifests/"
	promiseApp   = "scratch"
	roomyApp     = "roomy"
	stubbornApp  = "stubborn"
	brokenDriver = "the disk array is on fire"
)

// promise applies a claim of a promise class and, some time later, its Pod.
func (d *demo) promise(ctx context.Context) error {
	d.out.section("Just in time: a claim that is Bound before its disk exists")
	begin := time.Now()
	if _, err := d.scene(ctx, true, apply("promise-claim.yaml"), d.claimBound(d.host, space, promiseApp), d.promiseIs(v1alpha1.ReasonPromised)); err != nil {
		return err
	}
	d.figures.promise.bound = d.since(begin, object{d.host.column, kindClaim, space, promiseApp}, created, bound)
	where, err := d.disksOf(promiseApp)
	if err != nil {
		return err
	}
	d.checks.equal("promise: Bound, although no disk exists", "", where, fmt.Sprintf("after %s", seconds(d.figures.promise.bound)))

	begin = time.Now()
	if _, err := d.scene(ctx, false, apply("promise-pod.yaml"), d.podRunning(d.host, space, promiseApp), d.promiseIs(v1alpha1.ReasonFulfilled)); err != nil {
		return err
	}
	d.figures.promise.running = d.since(begin, object{d.host.column, kindPod, space, ""}, created, running)
	if err := d.printTable(ctx, d.host, "get", "pvc", promiseApp, "-n", space, "-o",
		`custom-columns=NAME:.metadata.name,VOLUME:.spec.volumeName,PROMISE:.status.conditions[?(@.type=="`+string(v1alpha1.ClaimPromise)+`")].message`); err != nil {
		return err
	}
	if where, err = d.disksOf(promiseApp); err != nil {
		return err
	}
	d.checks.equal("promise: the disk is provisioned where the Pod is scheduled", d.placeOf(promiseApp), where, "one disk, in "+where)
	return d.clear(ctx, promiseApp, "promise: the disk is deleted with its claim")
}

// full leaves a member with little free capacity, so that the scheduler skips it.
func (d *demo) full(ctx context.Context) error {
	d.out.section("A full member is skipped: the host knows each member's capacity")
	if err := d.do(ctx, d.members[0], apply("nearly-full.yaml")...); err != nil {
		return err
	}
	if err := d.await(ctx, "the host to show the new capacity", func(ctx context.Context) (string, error) { return d.lessRoom(ctx) }); err != nil {
		return err
	}
	if err := d.printTable(ctx, d.host, "get", "csistoragecapacities", "-n", v1alpha1.DefaultNamespace, "-o",
		`custom-columns=CLASS:.storageClassName,MEMBER:.metadata.labels.xylem\.io/cluster,LARGEST VOLUME:.maximumVolumeSize`); err != nil {
		return err
	}
	d.out.line("   (for unlimited, kubectl prints the largest 64-bit number)")
	d.out.line("   (the claim requests 1Gi, and the Pod prefers %s)", pinned)
	if _, err := d.scene(ctx, true, apply("roomy.yaml"), d.podRunning(d.host, space, roomyApp)); err != nil {
		return err
	}
	d.checks.equal("capacity: the scheduler skips the full member", spare, d.placeOf(roomyApp), "in "+spare+", although "+pinned+" was preferred")
	if err := d.do(ctx, d.members[0], "delete", "-f", manifests+"nearly-full.yaml"); err != nil {
		return err
	}
	return d.clear(ctx, roomyApp, "capacity: the disk is deleted with its claim")
}

// failing makes a member's driver fail, so that Xylem reassigns the claim.
func (d *demo) failing(ctx context.Context) error {
	d.out.section("A member cannot create the disk: another member takes over")
	m := d.members[0]
	if err := m.SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Code: codes.Internal, Message: brokenDriver}); err != nil {
		return err
	}
	d.out.line("   (from now on, the driver of %s fails every CreateVolume: %s)", m.Name(), brokenDriver)
	d.out.line("   (the Pod prefers %s)", pinned)
	if _, err := d.scene(ctx, true, apply("stubborn.yaml"), d.podRunning(d.host, space, stubbornApp)); err != nil {
		return err
	}
	if err := m.SetFaults(); err != nil {
		return err
	}
	where, err := d.disksOf(stubbornApp)
	if err != nil {
		return err
	}
	d.checks.equal("recovery: the claim moved to the working member", spare, where, "one disk, in "+where)
	said := d.timeline.said(object{d.host.column, kindClaim, space, stubbornApp}, brokenDriver)
	d.checks.equal("recovery: the claim reported the driver's error", true, said, brokenDriver)
	return d.clear(ctx, stubbornApp, "recovery: the disk is deleted with its claim; the failing member has none")
}

// clear deletes an app's Deployment and claim, and waits until the volume and the disk are deleted.
func (d *demo) clear(ctx context.Context, app, check string) error {
	volume := ""
	if claim := d.host.claim(space, app); claim != nil {
		volume = claim.Spec.VolumeName
	}
	command := []string{"-n", space, "delete", "--wait=false", "deployment/" + app, "pvc/" + app}
	d.prompt(d.host, command...)
	if _, err := d.kubectl(ctx, d.host, command...); err != nil {
		return err
	}
	err := d.await(ctx, "claim and disk of "+app+" gone", func(context.Context) (string, error) {
		if d.host.claim(space, app) != nil {
			return "the claim still exists", nil
		}
		if d.host.volume(volume) != nil {
			return "volume " + volume + " still exists", nil
		}
		where, err := d.disks(func(e ledger.Entry) bool {
			return e.ClaimNamespace == space && e.ClaimName == app || volume != "" && e.PVName == volume
		})
		if where != "" {
			return "there is a disk in " + where, err
		}
		return "", err
	})
	if err == nil {
		d.checks.pass(check, "")
	}
	return err
}

// disksOf returns the names of the members that have a claim's disk, once for each disk.
func (d *demo) disksOf(claim string) (string, error) {
	return d.disks(func(e ledger.Entry) bool { return e.ClaimNamespace == space && e.ClaimName == claim })
}

// disks returns the names of the members that have matching disks, once for each disk.
func (d *demo) disks(match func(ledger.Entry) bool) (string, error) {
	var where []string
	for _, m := range d.members {
		book, err := m.Ledger()
		if err != nil {
			return "", err
		}
		for _, e := range book.Live() {
			if match(e) {
				where = append(where, m.Name())
			}
		}
	}
	return strings.Join(where, ", "), nil
}

// placeOf returns the names of the members that run an application's Pods, once for each Pod.
func (d *demo) placeOf(app string) string {
	var where []string
	for _, pod := range d.host.labelled(space, "app", app) {
		where = append(where, strings.TrimPrefix(pod.Spec.NodeName, v1alpha1.DefaultNodeNamePrefix))
	}
	return strings.Join(where, ", ")
}

// since returns the time between two events of an object that occurred after begin.
func (d *demo) since(begin time.Time, o object, from, to event) time.Duration {
	first, ok := d.timeline.when(begin, o, from)
	last, ok2 := d.timeline.when(begin, o, to)
	if !ok || !ok2 {
		return 0
	}
	return last.Sub(first)
}

// promiseIs is met when the claim reports the given reason for its promise.
func (d *demo) promiseIs(reason string) condition {
	return condition{"claim " + promiseApp + " reports " + reason, func() (string, error) {
		claim := d.host.claim(space, promiseApp)
		if claim == nil {
			return "the claim does not exist", nil
		}
		for _, c := range claim.Status.Conditions {
			if c.Type == v1alpha1.ClaimPromise {
				return differs(reason, c), nil
			}
		}
		return "it lacks the condition", nil
	}}
}

func differs(reason string, c corev1.PersistentVolumeClaimCondition) string {
	if c.Reason == reason {
		return ""
	}
	return fmt.Sprintf("it reports %s: %s", c.Reason, c.Message)
}

// lessRoom returns "" if the host shows the first member's reduced capacity, and otherwise the
// capacity that the host shows.
func (d *demo) lessRoom(ctx context.Context) (string, error) {
	out, err := d.kubectl(ctx, d.host, "get", "csistoragecapacities", "-n", v1alpha1.DefaultNamespace, "-l", v1alpha1.LabelCluster+"="+pinned,
		"-o", "jsonpath={.items[*].maximumVolumeSize}")
	if err != nil || strings.Contains(out, "512Mi") {
		return "", err
	}
	return "the host still shows " + out, nil
}
