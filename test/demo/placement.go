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

// Names in manifests. A claim, its Deployment and the label of its Pods share one name.
const (
	manifests    = "test/demo/manifests/"
	promiseApp   = "scratch"
	roomyApp     = "roomy"
	stubbornApp  = "stubborn"
	brokenDriver = "the disk array is on fire"
)

// promise applies a claim of a promise class, and its Pod some time later.
func (d *demo) promise(ctx context.Context) error {
	d.out.section("Just in time: a claim that is Bound at once, and has no disk before its Pod")
	d.prompt(d.host, "kubectl apply -f "+manifests+"promise-claim.yaml")
	begin := time.Now()
	if _, err := d.scene(ctx, true, d.apply(manifests+"promise-claim.yaml"), d.claimBound(d.host, space, promiseApp), d.promiseIs(v1alpha1.ReasonPromised)); err != nil {
		return err
	}
	d.figures.promise.bound = d.since(begin, object{d.host.column, kindClaim, space, promiseApp}, created, bound)
	where, err := d.disksOf(promiseApp)
	if err != nil {
		return err
	}
	d.checks.equal("promise: Bound, and no disk anywhere", "", where, fmt.Sprintf("after %s", seconds(d.figures.promise.bound)))

	d.prompt(d.host, "kubectl apply -f "+manifests+"promise-pod.yaml")
	begin = time.Now()
	if _, err := d.scene(ctx, false, d.apply(manifests+"promise-pod.yaml"), d.podRunning(d.host, space, promiseApp), d.promiseIs(v1alpha1.ReasonFulfilled)); err != nil {
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
	d.checks.equal("promise: the disk is made where the Pod lands", d.placeOf(promiseApp), where, "one disk, in "+where)
	return d.clear(ctx, promiseApp, "promise: the disk goes with its claim")
}

// full makes a member run out of capacity, so that the scheduler skips it.
func (d *demo) full(ctx context.Context) error {
	d.out.section("A full member is skipped: Xylem publishes each member's capacity in the host")
	if err := d.do(ctx, d.members[0], "apply", "-f", manifests+"nearly-full.yaml"); err != nil {
		return err
	}
	if err := d.await(ctx, "the host to know", func(ctx context.Context) (string, error) { return d.lessRoom(ctx) }); err != nil {
		return err
	}
	if err := d.printTable(ctx, d.host, "get", "csistoragecapacities", "-n", v1alpha1.DefaultNamespace, "-o",
		`custom-columns=CLASS:.storageClassName,MEMBER:.metadata.labels.xylem\.io/cluster,ROOM FOR A VOLUME OF:.maximumVolumeSize`); err != nil {
		return err
	}
	d.prompt(d.host, "kubectl apply -f "+manifests+"roomy.yaml   # 1Gi, would rather be in "+pinned)
	if _, err := d.scene(ctx, true, d.apply(manifests+"roomy.yaml"), d.podRunning(d.host, space, roomyApp)); err != nil {
		return err
	}
	d.checks.equal("capacity: a full member is passed over", spare, d.placeOf(roomyApp), "in "+spare+", although "+pinned+" was preferred")
	if err := d.do(ctx, d.members[0], "delete", "-f", manifests+"nearly-full.yaml"); err != nil {
		return err
	}
	return d.clear(ctx, roomyApp, "capacity: the disk goes with its claim")
}

// failing makes a member's driver fail, so that Xylem reassigns the claim.
func (d *demo) failing(ctx context.Context) error {
	d.out.section("A member that cannot create the disk: claim and Pod move to the next")
	m := d.members[0]
	if err := m.SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Code: codes.Internal, Message: brokenDriver}); err != nil {
		return err
	}
	d.out.line("   (from now on, the driver of %s answers every CreateVolume: %s)", m.Name(), brokenDriver)
	d.prompt(d.host, "kubectl apply -f "+manifests+"stubborn.yaml   # would rather be in "+pinned)
	if _, err := d.scene(ctx, true, d.apply(manifests+"stubborn.yaml"), d.podRunning(d.host, space, stubbornApp)); err != nil {
		return err
	}
	if err := m.SetFaults(); err != nil {
		return err
	}
	where, err := d.disksOf(stubbornApp)
	if err != nil {
		return err
	}
	d.checks.equal("recovery: the claim moved to the member that can", spare, where, "one disk, in "+where)
	said := d.timeline.said(object{d.host.column, kindClaim, space, stubbornApp}, brokenDriver)
	d.checks.equal("recovery: the claim had the failing driver's words", true, said, brokenDriver)
	return d.clear(ctx, stubbornApp, "recovery: the disk goes with its claim, and the failing member has none")
}

// clear deletes an app and its claim, and waits until the volume and the disk are deleted.
func (d *demo) clear(ctx context.Context, app, check string) error {
	volume := ""
	if claim := d.host.claim(space, app); claim != nil {
		volume = claim.Spec.VolumeName
	}
	command := []string{"-n", space, "delete", "--wait=false", "deployment/" + app, "pvc/" + app}
	d.prompt(d.host, "kubectl "+strings.Join(command, " "))
	if _, err := d.kubectl(ctx, d.host, command...); err != nil {
		return err
	}
	err := d.await(ctx, "claim and disk of "+app+" gone", func(context.Context) (string, error) {
		if d.host.claim(space, app) != nil {
			return "the claim is there", nil
		}
		if d.host.volume(volume) != nil {
			return "volume " + volume + " is there", nil
		}
		where, err := d.disksOf(app)
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

// disksOf returns the members with a disk of a claim, once for each disk.
func (d *demo) disksOf(claim string) (string, error) {
	var where []string
	for _, m := range d.members {
		book, err := m.Ledger()
		if err != nil {
			return "", err
		}
		for range book.ForClaim(space, claim).Live() {
			where = append(where, m.Name())
		}
	}
	return strings.Join(where, ", "), nil
}

// placeOf returns the member that runs an app's Pods.
func (d *demo) placeOf(app string) string {
	var where []string
	for _, pod := range d.host.labelled(space, "app", app) {
		where = append(where, strings.TrimPrefix(pod.Spec.NodeName, v1alpha1.DefaultNodeNamePrefix))
	}
	return strings.Join(where, ", ")
}

// since returns the time between two events of an object after begin.
func (d *demo) since(begin time.Time, o object, from, to event) time.Duration {
	first, ok := d.timeline.when(begin, o, from)
	last, ok2 := d.timeline.when(begin, o, to)
	if !ok || !ok2 {
		return 0
	}
	return last.Sub(first)
}

// promiseIs: the claim's promise is in the given state.
func (d *demo) promiseIs(reason string) condition {
	return condition{"claim " + promiseApp + " says " + reason, func() (string, error) {
		claim := d.host.claim(space, promiseApp)
		if claim == nil {
			return "there is no claim", nil
		}
		for _, c := range claim.Status.Conditions {
			if c.Type == v1alpha1.ClaimPromise {
				return differs(reason, c), nil
			}
		}
		return "it says nothing", nil
	}}
}

func differs(reason string, c corev1.PersistentVolumeClaimCondition) string {
	if c.Reason == reason {
		return ""
	}
	return fmt.Sprintf("it says %s: %s", c.Reason, c.Message)
}

// lessRoom: the host publishes less capacity for the first member than for the other.
func (d *demo) lessRoom(ctx context.Context) (string, error) {
	out, err := d.kubectl(ctx, d.host, "get", "csistoragecapacities", "-n", v1alpha1.DefaultNamespace, "-l", v1alpha1.LabelCluster+"="+pinned,
		"-o", "jsonpath={.items[*].maximumVolumeSize}")
	if err != nil || strings.Contains(out, "512Mi") {
		return "", err
	}
	return "room for " + out, nil
}
