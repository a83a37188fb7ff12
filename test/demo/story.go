package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// Names in config/samples.
const (
	pinned     = "cluster38" // the member that the example is pinned to
	spare      = "cluster39"
	space      = "test-new" // the samples' namespace
	nginxClaim = "nginx-pvc"
	nginxApp   = "nginx"
	setApp     = "ledger"
	replicas   = 2
)

// grown is the new size of the claim.
const grown = "2Gi"

// scene prints a kubectl command, runs it in the host, and shows the changes until all conditions
// are met and Xylem stops writing. It returns Xylem's requests to each cluster.
func (d *demo) scene(ctx context.Context, brief bool, command []string, conditions ...condition) ([]controlplane.Requests, error) {
	d.prompt(d.host, command...)
	before, err := d.mark(ctx)
	if err != nil {
		return nil, err
	}
	d.timeline.begin(space, brief)
	defer d.timeline.end()
	if _, err := d.kubectl(ctx, d.host, command...); err != nil {
		return nil, err
	}
	for _, c := range conditions {
		if err := d.await(ctx, c.expected, func(context.Context) (string, error) { return c.lacking() }); err != nil {
			return nil, err
		}
	}
	return d.settle(ctx, before)
}

// condition is what a scene waits for. lacking returns the current state, or "" when the condition
// is met.
type condition struct {
	expected string
	lacking  func() (string, error)
}

// apply returns the arguments with which kubectl applies one of the demo's manifests.
func apply(file string) []string { return []string{"apply", "-f", manifests + file} }

// applySample does what apply does, for one of the samples.
func applySample(file string) []string { return []string{"apply", "-f", "config/samples/" + file} }

// nginx applies the first example.
func (d *demo) nginx(ctx context.Context) error {
	d.out.section("A claim and a Deployment in the host, pinned to " + pinned)
	begin := time.Now()
	requests, err := d.scene(ctx, false, applySample("nginx.yaml"),
		d.claimBound(d.host, space, nginxClaim), d.podRunning(d.host, space, nginxApp),
		d.claimBound(d.members[0], space, nginxClaim), d.podRunning(d.members[0], space, nginxApp))
	if err != nil {
		return err
	}
	d.figures.creation = requests
	d.figures.across = d.timing(begin, d.host, space)
	d.checks.pass("flow: claim Bound, Pod Running in the host and in "+pinned,
		fmt.Sprintf("Bound after %s, Running after %s", seconds(d.figures.across.bound), seconds(d.figures.across.running)))
	for _, pod := range d.host.labelled(space, "app", nginxApp) {
		d.checks.equal("flow: the Pod is on the virtual node", v1alpha1.DefaultNodeNamePrefix+pinned, pod.Spec.NodeName, pod.Spec.NodeName)
	}
	d.checkVolume(nginxClaim)
	return d.checkOneDisk(nginxClaim)
}

// checkVolume checks that a claim has the same volume on both sides, and that no action in the
// member alone can destroy it.
func (d *demo) checkVolume(name string) {
	const same, kept = "volume: the same name on both sides", "volume: policy Retain in the member while it is used"
	root, leaf := d.host.claim(space, name), d.members[0].claim(space, name)
	if root == nil || leaf == nil {
		d.checks.fail(same, "claims on both sides", "one is missing")
		return
	}
	d.checks.equal(same, root.Spec.VolumeName, leaf.Spec.VolumeName, root.Spec.VolumeName)
	volume := d.members[0].volume(leaf.Spec.VolumeName)
	if volume == nil {
		d.checks.fail(kept, "a volume", "none")
		return
	}
	d.checks.equal(kept, corev1.PersistentVolumeReclaimRetain, volume.Spec.PersistentVolumeReclaimPolicy, "and stamped "+v1alpha1.LabelHost)
}

// checkOneDisk checks that exactly one disk was created for a claim, in the first member.
func (d *demo) checkOneDisk(claim string) error {
	counts, err := d.countCalls(ledger.CreateVolume, claim)
	if err != nil {
		return err
	}
	want := fmt.Sprintf("1 in %s, 0 in %s", pinned, spare)
	d.checks.equal("disk: created once, in the Pod's member", want, counts, want)
	return nil
}

// statefulSet applies a StatefulSet that the scheduler places.
func (d *demo) statefulSet(ctx context.Context) error {
	d.out.section("A StatefulSet with two replicas, placed by the scheduler")
	conditions := []condition{}
	for i := range replicas {
		conditions = append(conditions, d.claimBound(d.host, space, setClaim(i)))
	}
	conditions = append(conditions, d.podRunning(d.host, space, setApp))
	for i := range replicas {
		conditions = append(conditions, d.leafFound(i))
	}
	if _, err := d.scene(ctx, true, applySample("statefulset.yaml"), conditions...); err != nil {
		return err
	}
	var where []string
	rows := [][]string{}
	for i := range replicas {
		name := fmt.Sprintf("%s-%d", setApp, i)
		for _, pod := range d.host.labelled(space, "statefulset.kubernetes.io/pod-name", name) {
			place := strings.TrimPrefix(pod.Spec.NodeName, v1alpha1.DefaultNodeNamePrefix)
			where = append(where, name+" in "+place)
			if root := d.host.claim(space, setClaim(i)); root != nil {
				rows = append(rows, []string{"Pod " + name, "on " + pod.Spec.NodeName, "claim " + root.Name, root.Spec.VolumeName, "the same in " + place})
			}
		}
	}
	for _, line := range table(rows) {
		d.out.line("   %s", line)
	}
	d.checks.pass("StatefulSet: each disk is in its Pod's member", strings.Join(where, ", "))
	return nil
}

// setClaim returns the name of a replica's claim.
func setClaim(i int) string { return fmt.Sprintf("data-%s-%d", setApp, i) }

// leafFound is met when a replica's leaf claim exists only in the replica's member, and is bound to
// the same volume.
func (d *demo) leafFound(i int) condition {
	return condition{fmt.Sprintf("replica %d's claim is bound to the same volume in its member, and exists only there", i), func() (string, error) {
		root := d.host.claim(space, setClaim(i))
		pod, err := d.host.pods.Pods(space).Get(fmt.Sprintf("%s-%d", setApp, i))
		if root == nil || err != nil {
			return "the claim or the Pod does not exist", nil //nolint:nilerr // A lister's only error: not there.
		}
		for _, m := range d.members {
			leaf := m.claim(space, setClaim(i))
			here := pod.Spec.NodeName == v1alpha1.DefaultNodeNamePrefix+m.Name()
			switch {
			case here && leaf == nil:
				return "there is no claim in " + m.Name(), nil
			case here && leaf.Spec.VolumeName != root.Spec.VolumeName:
				return fmt.Sprintf("%q in %s, %q in the host", leaf.Spec.VolumeName, m.Name(), root.Spec.VolumeName), nil
			case !here && leaf != nil:
				return "there is a claim in " + m.Name() + " too", nil
			}
		}
		return "", nil
	}}
}

// grow expands the example's claim.
func (d *demo) grow(ctx context.Context) error {
	d.out.section("Expanding the claim")
	patch := fmt.Sprintf(`{"spec":{"resources":{"requests":{"storage":"%s"}}}}`, grown)
	want := resource.MustParse(grown)
	_, err := d.scene(ctx, false, []string{"-n", space, "patch", "pvc", nginxClaim, "-p", patch}, d.hasGrown(d.members[0], want), d.hasGrown(d.host, want))
	if err != nil {
		return err
	}
	book, err := d.members[0].Ledger()
	if err != nil {
		return err
	}
	d.checks.equal("expansion: one ControllerExpandVolume in "+pinned, 1, book.ForClaim(space, nginxClaim).Count(ledger.ExpandVolume),
		"claim and volume have "+grown+" on both sides")
	return nil
}

// hasGrown is met when the claim and its volume have the new capacity in a cluster.
func (d *demo) hasGrown(v *view, want resource.Quantity) condition {
	return condition{fmt.Sprintf("claim %s and its volume have size %s in %s", nginxClaim, want.String(), v.Name()), func() (string, error) {
		claim := v.claim(space, nginxClaim)
		if claim == nil {
			return "there is no claim", nil
		}
		volume := v.volume(claim.Spec.VolumeName)
		if volume == nil {
			return "there is no volume", nil
		}
		inClaim, inVolume := claim.Status.Capacity.Storage(), volume.Spec.Capacity.Storage()
		if inClaim.Cmp(want) != 0 || inVolume.Cmp(want) != 0 {
			return fmt.Sprintf("the claim has %s, and the volume has %s", inClaim, inVolume), nil
		}
		return "", nil
	}}
}

// remove deletes the Deployment and its claim, and waits until the disk is deleted.
func (d *demo) remove(ctx context.Context) error {
	d.out.section("Deleting Deployment and claim (policy Delete) also deletes the disk")
	claim := d.host.claim(space, nginxClaim)
	if claim == nil {
		return &unmet{"claim " + nginxClaim, "it does not exist"}
	}
	dir, err := d.diskOf(d.members[0], nginxClaim)
	if err != nil {
		return err
	}
	command := []string{"-n", space, "delete", "--wait=false", "deployment/nginx-new", "pvc/" + nginxClaim}
	requests, err := d.scene(ctx, true, command, d.absent(d.host, claim.Spec.VolumeName), d.absent(d.members[0], claim.Spec.VolumeName))
	if err != nil {
		return err
	}
	d.figures.deletion = requests
	book, err := d.members[0].Ledger()
	if err != nil {
		return err
	}
	d.checks.equal("deletion: one DeleteVolume in "+pinned, 1, book.ForClaim(space, nginxClaim).Count(ledger.DeleteVolume),
		"Pod, claim and volume deleted on both sides")
	_, statErr := os.Stat(dir)
	d.checks.equal("deletion: the disk's directory was removed", true, errors.Is(statErr, os.ErrNotExist), "")
	d.out.line("      removed: %s", dir)
	return d.checkNoLeak()
}

// diskOf returns the directory of a claim's disk.
func (d *demo) diskOf(m *view, claim string) (string, error) {
	id, err := d.diskID(m, claim)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(m.VolumesDir(), id)
	if _, err := os.Stat(dir); err != nil {
		return "", &unmet{"the disk's directory", err.Error()}
	}
	return dir, nil
}

// diskID returns the ID that the driver gave the disk of a claim in a member.
func (d *demo) diskID(m *view, claim string) (string, error) {
	if leaf := m.claim(space, claim); leaf != nil {
		return m.diskOfVolume(leaf.Spec.VolumeName)
	}
	return "", &unmet{"claim " + claim + " in " + m.Name(), "it does not exist"}
}

// diskOfVolume returns the ID that the driver gave the disk of a volume.
func (v *view) diskOfVolume(name string) (string, error) {
	if volume := v.volume(name); volume != nil && volume.Spec.CSI != nil {
		return volume.Spec.CSI.VolumeHandle, nil
	}
	return "", &unmet{"volume " + name + " in " + v.Name(), "it does not exist"}
}

// absent is met when none of the example's objects are left in a cluster.
func (d *demo) absent(v *view, volume string) condition {
	return condition{"no objects of the example are left in " + v.Name(), func() (string, error) {
		var left []string
		for _, pod := range v.labelled(space, "app", nginxApp) {
			left = append(left, "Pod "+pod.Name)
		}
		if v.claim(space, nginxClaim) != nil {
			left = append(left, "claim "+nginxClaim)
		}
		if v.volume(volume) != nil {
			left = append(left, "volume "+volume)
		}
		return strings.Join(left, ", "), nil
	}}
}

// checkNoLeak checks that every disk is used by a claim in the host.
func (d *demo) checkNoLeak() error {
	disks, claims := 0, 0
	for _, m := range d.members {
		book, err := m.Ledger()
		if err != nil {
			return err
		}
		for _, e := range book.Live() {
			disks++
			if claim := d.host.claim(e.ClaimNamespace, e.ClaimName); claim != nil && claim.Spec.VolumeName == e.PVName {
				claims++
			}
		}
	}
	want := fmt.Sprintf("%d disks left, %[1]d with a claim in the host", replicas)
	d.checks.equal("deletion: no disk leaked; the StatefulSet's disks remain", want, fmt.Sprintf("%d disks left, %d with a claim in the host", disks, claims), want)
	return nil
}

// claimBound is met when a claim is bound in a cluster.
func (d *demo) claimBound(v *view, namespace, name string) condition {
	return condition{fmt.Sprintf("claim %s/%s Bound in %s", namespace, name, v.Name()), func() (string, error) {
		claim := v.claim(namespace, name)
		switch {
		case claim == nil:
			return "it does not exist", nil
		case claim.Status.Phase != corev1.ClaimBound:
			return string("it is " + claim.Status.Phase), nil
		default:
			return "", nil
		}
	}}
}

// podRunning is met when an application has at least one Pod, and all its Pods are running.
func (d *demo) podRunning(v *view, namespace, app string) condition {
	return condition{fmt.Sprintf("Pods app=%s Running in %s", app, v.Name()), func() (string, error) {
		pods := v.labelled(namespace, "app", app)
		if len(pods) == 0 {
			return "there are none", nil
		}
		var lacking []string
		for _, pod := range pods {
			if pod.Status.Phase != corev1.PodRunning {
				lacking = append(lacking, fmt.Sprintf("%s is %s", pod.Name, pod.Status.Phase))
			}
		}
		return strings.Join(lacking, ", "), nil
	}}
}

// reserved checks that users cannot write the annotations that record where a volume is.
func (d *demo) reserved(ctx context.Context) error {
	_, err := d.kubectl(ctx, d.host, "-n", space, "annotate", "--overwrite", "pvc", nginxClaim, v1alpha1.AnnotationPlacedIn+"=elsewhere")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	is := "rejected by the admission policy"
	if !refusedByPolicy(err) {
		is = fmt.Sprintf("got: %v", err)
	}
	d.checks.equal("trust: users cannot move a claim ("+v1alpha1.AnnotationPlacedIn+")", "rejected by the admission policy", is, is)
	return nil
}
