package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	// plainLimit is the maximum number of claims for the plain mirror. It reads all objects at each
	// poll, so with more claims, its figures would mostly show the cost of these reads.
	plainLimit = 500
	// pollInterval is the pause between two reads of the plain mirror.
	pollInterval = 100 * time.Millisecond
	// leaseInterval is how often the plain mirror renews the Leases of the virtual nodes, like a
	// kubelet.
	leaseInterval = 10 * time.Second
)

// yardPlain measures the plain yardstick: the simplest mirror that works takes Xylem's place, with
// the same claims, Pods and virtual nodes. It polls, and has neither fences nor policies nor guards.
// The manager does not run, and the host's admission policies are disabled. Those of the members
// apply only to Xylem's account.
func (r *rig) yardPlain(ctx context.Context, p part) error {
	if err := r.x.Manager.Stop(); err != nil {
		return err
	}
	was, err := lawless(ctx, r.x.Fleet.Host)
	if err != nil {
		return err
	}
	b := batch{class: classMirror, claims: p.claims, rate: p.rate}
	if b.namespace, err = r.space(ctx, p.scenario, append(views{r.host}, r.leaves...)...); err != nil {
		return err
	}
	group, running := errgroup.WithContext(ctx)
	mirroring, stop := context.WithCancel(running)
	group.Go(func() error { return (&plain{r: r, namespace: b.namespace}).run(mirroring) })
	group.Go(func() error {
		defer stop()
		return r.plainly(running, p, b)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	r.forget(b.namespace)
	if err := lawful(ctx, r.x.Fleet.Host, was); err != nil {
		return err
	}
	return r.restart(ctx)
}

// plainly measures how the plain mirror creates the claims and Pods, and how it deletes them.
func (r *rig) plainly(ctx context.Context, p part, b batch) error {
	run := p.run(r, partPlain)
	asked, err := b.apply(ctx, r.host.client)
	if err != nil {
		return err
	}
	if err := r.await(ctx, "running", b.claims, func() int { return r.running(b.namespace) }); err != nil {
		return err
	}
	run.Busy = run.busy.processors()
	run.Times[askedRuns] = between(asked, ofPods(r.host.times(running, b.namespace)))
	run.finish(r, asked, r.host.times(bound, b.namespace))

	run = p.run(r, partPlain+partDelete)
	begin := time.Now()
	if err := b.remove(ctx, r.host.client); err != nil {
		return err
	}
	if err := r.await(ctx, "gone", b.claims, func() int { return r.gone(b.namespace) }); err != nil {
		return err
	}
	run.Busy = run.busy.processors()
	run.finishDeletion(r, begin, r.host.times(volumeGone, b.namespace))
	return nil
}

// plain is the simplest mirror that works. It serves one namespace of the host, and each of its
// Pods uses one claim.
type plain struct {
	r         *rig
	namespace string
	renewed   time.Time // when it last renewed the Leases
}

func (m *plain) run(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if err := m.step(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the plain mirror: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// contents are the objects of a cluster that concern the mirror.
type contents struct {
	claims  map[string]*corev1.PersistentVolumeClaim
	pods    map[string]*corev1.Pod
	volumes map[string]*corev1.PersistentVolume // by the name of the claim
}

func (m *plain) read(ctx context.Context, v *view) (contents, error) {
	c := contents{map[string]*corev1.PersistentVolumeClaim{}, map[string]*corev1.Pod{}, map[string]*corev1.PersistentVolume{}}
	core := v.client.CoreV1()
	claims, err := core.PersistentVolumeClaims(m.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return c, err
	}
	for i := range claims.Items {
		c.claims[claims.Items[i].Name] = &claims.Items[i]
	}
	pods, err := core.Pods(m.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return c, err
	}
	for i := range pods.Items {
		c.pods[pods.Items[i].Name] = &pods.Items[i]
	}
	volumes, err := core.PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return c, err
	}
	for i := range volumes.Items {
		if ref := volumes.Items[i].Spec.ClaimRef; ref != nil && ref.Namespace == m.namespace {
			c.volumes[ref.Name] = &volumes.Items[i]
		}
	}
	return c, nil
}

// step reads all clusters and makes all writes that are possible.
func (m *plain) step(ctx context.Context) error {
	if time.Since(m.renewed) > leaseInterval {
		if err := m.renew(ctx); err != nil {
			return err
		}
		m.renewed = time.Now()
	}
	leaves := make([]contents, len(m.r.leaves))
	group, reading := errgroup.WithContext(ctx)
	for i, v := range m.r.leaves {
		group.Go(func() (err error) {
			leaves[i], err = m.read(reading, v)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	// The host is read last, so a leaf object without its host object is one whose host object was
	// deleted.
	host, err := m.read(ctx, m.r.host)
	if err != nil {
		return err
	}
	var writes []func(context.Context) error
	for i, leaf := range leaves {
		writes = append(writes, m.down(i, host, leaf)...)
		writes = append(writes, m.up(i, host, leaf)...)
	}
	return atOnce(ctx, len(writes), func(ctx context.Context, i int) error {
		err := writes[i](ctx)
		if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // the next step reads the object again
		}
		return err
	})
}

// down returns the writes to a member: it creates and deletes the leaf claims and Pods.
func (m *plain) down(i int, host, leaf contents) (writes []func(context.Context) error) {
	core := m.r.leaves[i].client.CoreV1()
	for name, pod := range host.pods {
		claim := host.claims[pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName]
		if claim == nil || claim.Annotations[volume.AnnSelectedNode] != nodeName(i) || pod.DeletionTimestamp != nil {
			continue
		}
		if leaf.claims[claim.Name] == nil {
			writes = append(writes, func(ctx context.Context) error {
				_, err := core.PersistentVolumeClaims(m.namespace).Create(ctx, harness.Claim(m.namespace, claim.Name, classMember), metav1.CreateOptions{})
				return err
			})
		}
		if leaf.pods[name] == nil {
			writes = append(writes, func(ctx context.Context) error {
				_, err := core.Pods(m.namespace).Create(ctx, harness.Pod(m.namespace, name, claim.Name), metav1.CreateOptions{})
				return err
			})
		}
	}
	for name, pod := range leaf.pods {
		if root := host.pods[name]; (root == nil || root.DeletionTimestamp != nil) && pod.DeletionTimestamp == nil {
			writes = append(writes, func(ctx context.Context) error {
				return core.Pods(m.namespace).Delete(ctx, name, metav1.DeleteOptions{})
			})
		}
	}
	for name, claim := range leaf.claims {
		if host.claims[name] == nil && claim.DeletionTimestamp == nil {
			writes = append(writes, func(ctx context.Context) error {
				return core.PersistentVolumeClaims(m.namespace).Delete(ctx, name, metav1.DeleteOptions{})
			})
		}
	}
	return writes
}

// up returns the writes to the host: it creates and deletes the host PVs, reports the status of the
// leaf Pods, and completes the deletion of Pods.
func (m *plain) up(i int, host, leaf contents) (writes []func(context.Context) error) {
	core := m.r.host.client.CoreV1()
	for name, claim := range leaf.claims {
		root, pv := host.claims[name], leaf.volumes[name]
		if root == nil || pv == nil || claim.Status.Phase != corev1.ClaimBound || host.volumes[name] != nil {
			continue
		}
		writes = append(writes, func(ctx context.Context) error {
			_, err := core.PersistentVolumes().Create(ctx, plainVolume(pv, root, nodeName(i)), metav1.CreateOptions{})
			return err
		})
	}
	for name, pv := range host.volumes {
		if host.claims[name] == nil && leaf.claims[name] == nil && leaf.volumes[name] == nil && pv.DeletionTimestamp == nil && placedOn(pv, nodeName(i)) {
			writes = append(writes, func(ctx context.Context) error {
				return core.PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{})
			})
		}
	}
	for name, pod := range host.pods {
		if pod.Spec.NodeName != nodeName(i) {
			continue
		}
		copied := leaf.pods[name]
		switch {
		case copied == nil && pod.DeletionTimestamp != nil:
			writes = append(writes, func(ctx context.Context) error {
				return core.Pods(m.namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
			})
		case copied != nil && copied.Status.Phase != pod.Status.Phase:
			pod.Status = copied.Status
			writes = append(writes, func(ctx context.Context) error {
				_, err := core.Pods(m.namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
				return err
			})
		}
	}
	return writes
}

// renew renews the Leases of the virtual nodes, so that they remain Ready.
func (m *plain) renew(ctx context.Context) error {
	leases := m.r.host.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	for i := range m.r.members {
		lease, err := leases.Get(ctx, nodeName(i), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the Lease of node %s: %w", nodeName(i), err)
		}
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("renew the Lease of node %s: %w", nodeName(i), err)
		}
	}
	return nil
}

// plainVolume returns the host PV for a leaf PV. The PV controller does not delete it.
func plainVolume(leaf *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, node string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: leaf.Name, Annotations: map[string]string{volume.AnnDynamicallyProvisioned: driverName}},
		Spec:       *leaf.Spec.DeepCopy(),
	}
	pv.Spec.StorageClassName, pv.Spec.PersistentVolumeReclaimPolicy = *claim.Spec.StorageClassName, corev1.PersistentVolumeReclaimRetain
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: leaf.Spec.CSI.VolumeHandle}
	pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}}
	return pv
}

func placedOn(pv *corev1.PersistentVolume, node string) bool {
	return pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0] == node
}
