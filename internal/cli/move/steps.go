package move

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/text"
)

// copyAndCompare copies the data to a new disk, and compares both. It does not change the claim or
// its disk.
func (r *run) copyAndCompare(ctx context.Context) error {
	old, err := r.unmoved(ctx)
	if err != nil {
		return err
	}
	if err := r.unused(ctx, r.ID, r.Claim.Name, r.Copy); err != nil {
		return err
	}
	if err := r.removePods(ctx); err != nil {
		return err
	}
	if err := r.ensureCopy(ctx, old); err != nil {
		return err
	}
	for _, role := range []string{reads, writes} {
		if err := r.startPod(ctx, role); err != nil {
			return err
		}
	}
	copied, err := r.copied(ctx)
	if err != nil {
		return err
	}
	if copied.UID != r.New.UID { // otherwise, keep the recorded policy, which is from before the move
		r.New = copied
	}
	if err := r.transfer(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	if err := r.ready(ctx); err != nil {
		return err
	}
	return r.enter(ctx, swapping)
}

// unmoved checks that the claim still has its disk, and returns its volume.
func (r *run) unmoved(ctx context.Context) (*corev1.PersistentVolume, error) {
	claim, err := r.claim(ctx, r.Claim.Name)
	if err != nil {
		return nil, err
	}
	if claim == nil || claim.UID != r.ClaimUID || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound {
		return nil, fmt.Errorf("claim %q was deleted, or is no longer bound to volume %q. Run this command with --undo to discard the move", r.Claim.Name, r.Old.Name)
	}
	return r.volume(ctx, r.Old)
}

// ready checks the prerequisites again, just before the command changes the claim.
func (r *run) ready(ctx context.Context) error {
	if err := r.unused(ctx, r.ID, r.Claim.Name, r.Copy); err != nil {
		return err
	}
	if _, err := r.unmoved(ctx); err != nil {
		return err
	}
	for _, where := range []place{r.From, r.To} {
		if _, err := r.node(ctx, where); err != nil {
			return err
		}
	}
	return r.sound(ctx)
}

// sound checks that the second claim is still bound to the volume that was compared.
func (r *run) sound(ctx context.Context) error {
	copied, err := r.copied(ctx)
	if err == nil && copied.UID != r.New.UID {
		err = fmt.Errorf("claim %q (the copy) now has another volume", r.Copy)
	}
	return err
}

// ensureCopy creates the second claim. If the existing one has lost its volume, it creates another
// one.
func (r *run) ensureCopy(ctx context.Context, old *corev1.PersistentVolume) error {
	existing, err := r.claim(ctx, r.Copy)
	if err != nil {
		return err
	}
	if why := lost(existing); why != "" {
		r.say("The copy was lost (%s). Creating another one", why)
		if err := r.dropCopy(ctx); err != nil {
			return err
		}
		existing = nil
	}
	if err := r.removeClaims(ctx, r.Copy); err != nil {
		return err
	}
	if existing == nil {
		if err := r.host.Create(ctx, copyClaim(r.record, old), command.FieldOwner); err != nil {
			return r.explain(fmt.Errorf("create claim %q: %w", r.Copy, err))
		}
	}
	return nil
}

// dropCopy abandons the second claim, and chooses the name of its successor.
func (r *run) dropCopy(ctx context.Context) error {
	pv, err := r.copyVolume(ctx)
	if err != nil {
		return err
	}
	if pv != nil { // after an attempt to swap, which set policy Retain
		if err := r.setVolume(ctx, r.New, r.New.Policy, nil); err != nil {
			return err
		}
	}
	r.Copy, r.New = copyName(r.Claim.Name, r.newID()), disk{}
	return r.save(ctx)
}

// lost returns the reason why a claim is no longer usable, or "".
func lost(claim *corev1.PersistentVolumeClaim) string {
	switch {
	case claim == nil:
		return ""
	case claim.DeletionTimestamp != nil:
		return "its claim is being deleted"
	case claim.Status.Phase == corev1.ClaimLost:
		return "its claim has lost its volume"
	}
	if problem := report.ClaimProblem(claim, v1alpha1.ClaimPlaced); problem != nil && claim.Spec.VolumeName != "" {
		return problem.Message
	}
	return ""
}

// removeClaims deletes the second claims of this move, except one. Xylem destroys their disks if the
// class's policy is Delete.
func (r *run) removeClaims(ctx context.Context, except string) error {
	var claims corev1.PersistentVolumeClaimList
	if err := r.host.List(ctx, &claims, client.InNamespace(r.namespace), client.MatchingLabels{v1alpha1.LabelMove: r.ID, v1alpha1.LabelManagedBy: manager}); err != nil {
		return r.explain(fmt.Errorf("list claims: %w", err))
	}
	for i := range claims.Items {
		if claim := &claims.Items[i]; claim.Name != except {
			if err := r.deleteClaim(ctx, claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteClaim deletes a claim unless another run has taken over. The other run changes the claim,
// or its volume, before it relies on the claim, so a delayed deletion fails.
func (r *run) deleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	name, uid := claim.Name, claim.UID
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // other clients write the status
		claim, err := r.claim(ctx, name)
		if err != nil || claim == nil || claim.UID != uid || claim.DeletionTimestamp != nil {
			return err
		}
		if err := r.mine(ctx); err != nil {
			return err
		}
		version := claim.ResourceVersion
		if err := client.IgnoreNotFound(r.host.Delete(ctx, claim, client.Preconditions{UID: &uid, ResourceVersion: &version})); err != nil {
			return r.explain(fmt.Errorf("delete claim %q: %w", name, err))
		}
		return nil
	})
}

// removePods deletes the Pods of all runs, and waits until they are gone.
func (r *run) removePods(ctx context.Context) error {
	return r.await(ctx, "the move's Pods to be deleted", func(ctx context.Context) (string, error) {
		pods, err := r.pods(ctx)
		if err != nil {
			return "", err
		}
		var names []string
		for i := range pods {
			names = append(names, pods[i].Name)
			if pods[i].DeletionTimestamp != nil {
				continue
			}
			if err := client.IgnoreNotFound(r.host.Delete(ctx, &pods[i], client.Preconditions{UID: &pods[i].UID})); err != nil {
				return "", r.explain(fmt.Errorf("delete Pod %q: %w", pods[i].Name, err))
			}
		}
		if len(names) == 0 {
			return "", nil
		}
		return text.Quoted(names...) + " still exist", nil
	})
}

// pods returns the Pods of the move.
func (r *run) pods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.host.List(ctx, &pods, client.InNamespace(r.namespace), client.MatchingLabels{v1alpha1.LabelMove: r.ID, v1alpha1.LabelManagedBy: manager}); err != nil {
		return nil, r.explain(fmt.Errorf("list Pods: %w", err))
	}
	return pods.Items, nil
}

// startPod creates a Pod, and waits until it runs.
func (r *run) startPod(ctx context.Context, role string) error {
	pod, err := r.podFor(ctx, role)
	if err != nil {
		return err
	}
	where := r.where(role)
	r.say("Starting Pod %q in member %q", pod.Name, where.Registration)
	if err := r.host.Create(ctx, pod, command.FieldOwner); err != nil {
		return r.explain(fmt.Errorf("create Pod %q: %w", pod.Name, err))
	}
	return r.await(ctx, fmt.Sprintf("Pod %q to run", pod.Name), func(ctx context.Context) (string, error) {
		now, err := index.Find[corev1.Pod](ctx, r.host, client.ObjectKeyFromObject(pod))
		switch {
		case err != nil:
			return "", r.explain(err)
		case now == nil, now.DeletionTimestamp != nil:
			return "", fmt.Errorf("somebody deleted Pod %q", pod.Name)
		case now.Status.Phase == corev1.PodFailed, now.Status.Phase == corev1.PodSucceeded:
			return "", fmt.Errorf("Pod %q terminated in member %q: %s %s", pod.Name, where.Registration, now.Status.Reason, now.Status.Message)
		case running(now):
			return "", nil
		}
		claim, err := r.claim(ctx, now.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
		if err != nil {
			return "", err
		}
		return waitsFor(now, claim), nil
	})
}

func running(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].State.Running == nil {
			return false
		}
	}
	return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) > 0 && pod.DeletionTimestamp == nil
}

// waitsFor returns the reason why a Pod does not run yet, as reported by Xylem, the scheduler or
// the container runtime.
func waitsFor(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) string {
	for _, kind := range []corev1.PersistentVolumeClaimConditionType{v1alpha1.ClaimPlaced, v1alpha1.ClaimPlaceable} {
		if claim == nil {
			break
		}
		if problem := report.ClaimProblem(claim, kind); problem != nil {
			return fmt.Sprintf("claim %q: %s", claim.Name, problem.Message)
		}
	}
	for _, kind := range []corev1.PodConditionType{v1alpha1.PodPlaceable, v1alpha1.PodPushed, corev1.PodScheduled} {
		if problem := report.PodProblem(pod, kind); problem != nil {
			return problem.Message
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if w := pod.Status.ContainerStatuses[i].State.Waiting; w != nil && w.Message != "" {
			return w.Message
		}
	}
	return "its phase is " + string(pod.Status.Phase)
}

// copied returns the volume of the second claim, or an error if the volume is lost or not in the
// right member.
func (r *run) copied(ctx context.Context) (disk, error) {
	claim, err := r.claim(ctx, r.Copy)
	switch {
	case err != nil:
		return disk{}, err
	case claim == nil || claim.Status.Phase != corev1.ClaimBound:
		return disk{}, fmt.Errorf("claim %q (the copy) does not exist, or lost its volume", r.Copy)
	case lost(claim) != "":
		return disk{}, fmt.Errorf("the copy in member %q was lost: %s", r.To.Registration, lost(claim))
	}
	pv, err := index.Find[corev1.PersistentVolume](ctx, r.host, client.ObjectKey{Name: claim.Spec.VolumeName})
	if err != nil {
		return disk{}, r.explain(err)
	}
	if pv == nil || !hostpv.PointsAt(pv, claim) {
		return disk{}, fmt.Errorf("claim %q (the copy) has lost its volume %q", r.Copy, claim.Spec.VolumeName)
	}
	if clusterID, _, _, ours := hostpv.LeafOf(pv); !ours || clusterID != r.To.ClusterID {
		return disk{}, fmt.Errorf("volume %q of claim %q is not in member %q", pv.Name, r.Copy, r.To.Registration)
	}
	return disk{pv.Name, pv.UID, pv.Spec.PersistentVolumeReclaimPolicy}, nil
}

// transfer copies the data.
func (r *run) transfer(ctx context.Context) error {
	from := side{podName(r.record, reads), sendFiles, fmt.Sprintf("member %q", r.From.Registration)}
	to := side{podName(r.record, writes), receiveFiles, fmt.Sprintf("member %q", r.To.Registration)}
	var (
		args  []string
		total int64
		err   error
	)
	if isBlock(r.record) {
		from.script, to.script = sendDevice, receiveDevice
		if err := r.sizes(ctx, from, to); err != nil {
			return err
		}
		total, args = r.Bytes, []string{strconv.FormatInt(r.Bytes, 10)}
	} else if total, err = r.shell.number(ctx, from.pod, usedBytes); err != nil {
		return fmt.Errorf("read the disk in %s: %w", from.where, err)
	}
	r.say("Copying about %s", bytesOf(total))
	b := newBar(r.env.Drawing(), r.env.Clock, total)
	err = r.shell.pipe(ctx, from, to, b.add, args...)
	was := b.end()
	if err != nil {
		return fmt.Errorf("the copy was interrupted after %s: %w", was, err)
	}
	r.say("Copied %s", was)
	return nil
}

// sizes records the size of the device, and checks that the copy is not smaller.
func (r *run) sizes(ctx context.Context, from, to side) error {
	has, err := r.shell.number(ctx, from.pod, deviceBytes)
	if err != nil {
		return fmt.Errorf("read the size of the disk in %s: %w", from.where, err)
	}
	gets, err := r.shell.number(ctx, to.pod, deviceBytes)
	if err != nil {
		return fmt.Errorf("read the size of the copy in %s: %w", to.where, err)
	}
	if gets < has {
		return fmt.Errorf("the disk has %d bytes, but the new one in %s has only %d, although its claim requests as much. Increase the request of claim %q, and wait until the volume is expanded. Run this command with --undo, then move the claim again", has, to.where, gets, r.Claim.Name)
	}
	r.Bytes = has
	return nil
}

// sumOf calculates the checksum of a disk in a Pod.
func (r *run) sumOf(ctx context.Context, pod string, where place) (string, error) {
	script, args := sumFiles, []string(nil)
	if isBlock(r.record) {
		script, args = sumDevice, []string{strconv.FormatInt(r.Bytes, 10)}
	}
	sum, err := r.shell.sum(ctx, pod, script, args...)
	if err != nil {
		return "", fmt.Errorf("calculate the checksum in member %q: %w", where.Registration, err)
	}
	return sum, nil
}

// compare compares the checksums of both disks after the copy.
func (r *run) compare(ctx context.Context) error {
	r.say("Comparing both disks by checksum")
	sums := make([]string, 2)
	group, groupCtx := errgroup.WithContext(ctx)
	for i, role := range []string{reads, writes} {
		group.Go(func() (err error) {
			sums[i], err = r.sumOf(groupCtx, podName(r.record, role), r.where(role))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if sums[0] != sums[1] {
		return fmt.Errorf("the disks differ: checksum %s in member %q, %s in member %q. Somebody wrote to one of them during the copy, or one file system does not support what the other one contains",
			sums[0], r.From.Registration, sums[1], r.To.Registration)
	}
	r.Sum = sums[0]
	return nil
}

// seal deletes the claim, and compares its disk once more while its own Pod keeps the claim from
// disappearing. No other Pod can begin to use a claim that is being deleted.
func (r *run) seal(ctx context.Context) error {
	if err := r.sound(ctx); err != nil {
		return r.restart(ctx, err.Error())
	}
	if err := r.retain(ctx); err != nil {
		return err
	}
	claim, err := r.claim(ctx, r.Claim.Name)
	if err != nil {
		return err
	}
	reader, err := r.reader(ctx)
	switch {
	case err != nil:
		return err
	case claim == nil || claim.UID != r.ClaimUID || reader == "":
		// The claim was deleted, or its Pod ended, before the disk was compared again.
		return r.restart(ctx, "the Pod that compares the old disk ended")
	case claim.DeletionTimestamp == nil:
		if err := r.ready(ctx); err != nil {
			return err
		}
		r.say("Deleting claim %q. Its disk is kept", claim.Name)
		if err := r.deleteClaim(ctx, claim); err != nil {
			return err
		}
	}
	if err := r.unused(ctx, r.ID, r.Claim.Name); err != nil {
		return err
	}
	r.say("Comparing the old disk again")
	sum, err := r.sumOf(ctx, reader, r.From)
	if err != nil {
		return err
	}
	if err := r.unused(ctx, r.ID, r.Claim.Name); err != nil {
		return err
	}
	if sum != r.Sum {
		return errors.Join(r.restart(ctx, "somebody wrote to the disk after it was compared"),
			fmt.Errorf("somebody wrote to the disk in member %q after it was compared, so the copy is out of date. Claim %q has its old disk again", r.From.Registration, r.Claim.Name))
	}
	return r.enter(ctx, sealed)
}

// reader returns the Pod that can read the old disk, or "".
func (r *run) reader(ctx context.Context) (string, error) {
	pods, err := r.pods(ctx)
	if err != nil {
		return "", err
	}
	for i := range pods {
		if running(&pods[i]) && pods[i].Spec.Volumes[0].PersistentVolumeClaim.ClaimName == r.Claim.Name {
			return pods[i].Name, nil
		}
	}
	return "", nil
}

// restart binds the claim to its old disk again, to copy and compare the disk once more.
func (r *run) restart(ctx context.Context, why string) error {
	r.say("Restarting with the copy: %s", why)
	if err := r.restore(ctx); err != nil {
		return err
	}
	r.Sum = ""
	return r.enter(ctx, copying)
}

// retain sets both volumes to policy Retain, and annotates the old one.
func (r *run) retain(ctx context.Context) error {
	if err := r.setVolume(ctx, r.New, corev1.PersistentVolumeReclaimRetain, nil); err != nil {
		return err
	}
	return r.setVolume(ctx, r.Old, corev1.PersistentVolumeReclaimRetain, r.marks(r.Old))
}

// release deletes the Pods and the second claim, and waits until neither claim exists.
func (r *run) release(ctx context.Context) error {
	if err := r.retain(ctx); err != nil { // somebody may have changed a policy in the meantime
		return err
	}
	if err := r.removePods(ctx); err != nil {
		return err
	}
	if err := r.gone(ctx, r.Claim.Name, r.ClaimUID); err != nil {
		return err
	}
	if err := r.removeClaims(ctx, ""); err != nil {
		return err
	}
	copied, err := r.claim(ctx, r.Copy)
	if err != nil {
		return err
	}
	if copied != nil {
		if err := r.gone(ctx, r.Copy, copied.UID); err != nil {
			return err
		}
	}
	r.Used = true
	return r.enter(ctx, rebinding)
}

// gone waits until a claim no longer exists.
func (r *run) gone(ctx context.Context, name string, uid types.UID) error {
	return r.await(ctx, fmt.Sprintf("claim %q to be deleted", name), func(ctx context.Context) (string, error) {
		claim, err := r.claim(ctx, name)
		if err != nil || claim == nil || claim.UID != uid {
			return "", err
		}
		if err := r.unused(ctx, r.ID, name); err != nil {
			return err.Error(), nil //nolint:nilerr // it may end
		}
		return "it still has finalizers " + text.Quoted(claim.Finalizers...), nil
	})
}

// rebind creates the claim again, bound to the copy.
func (r *run) rebind(ctx context.Context) error {
	r.say("Creating claim %q again, with the disk in member %q", r.Claim.Name, r.To.Registration)
	if _, err := r.attach(ctx, r.New); err != nil {
		return err
	}
	if err := r.setVolume(ctx, r.New, r.New.Policy, nil); err != nil {
		return err
	}
	return r.enter(ctx, done)
}

// attach creates the claim for an unused volume, and waits until it is bound.
func (r *run) attach(ctx context.Context, d disk) (types.UID, error) {
	claim, err := r.claim(ctx, r.Claim.Name)
	switch {
	case err != nil:
		return "", err
	case claim == nil:
		if err := r.reserve(ctx, d); err != nil {
			return "", err
		}
		claim = boundTo(r.record, d.Name)
		if err := r.host.Create(ctx, claim, command.FieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", r.explain(fmt.Errorf("create claim %q: %w", claim.Name, err))
		}
	case !isBoundTo(claim, r.record, d.Name):
		return "", fmt.Errorf("somebody created another claim %q while its disk was moved. Delete that claim", claim.Name)
	}
	var uid types.UID
	err = r.await(ctx, fmt.Sprintf("claim %q to be bound", r.Claim.Name), func(ctx context.Context) (string, error) {
		claim, err := r.claim(ctx, r.Claim.Name)
		switch {
		case err != nil:
			return "", err
		case claim == nil || !isBoundTo(claim, r.record, d.Name):
			return "", fmt.Errorf("somebody deleted claim %q, or created it again, while its disk was moved", r.Claim.Name)
		case claim.Status.Phase == corev1.ClaimBound:
			uid = claim.UID
			return "", nil
		}
		return "its phase is " + string(claim.Status.Phase), nil
	})
	return uid, err
}

// reserve points a volume at the claim that will be created.
func (r *run) reserve(ctx context.Context, d disk) error {
	err := r.await(ctx, fmt.Sprintf("volume %q to be released", d.Name), func(ctx context.Context) (string, error) {
		pv, err := r.volume(ctx, d)
		if err != nil || pv.Status.Phase != corev1.VolumeBound {
			return "", err
		}
		return "its phase is Bound", nil
	})
	if err != nil {
		return err
	}
	return r.patchVolume(ctx, d, "reserve it for the claim", func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: r.namespace, Name: r.Claim.Name}
	})
}
