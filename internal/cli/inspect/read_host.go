package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

const (
	// patience limits one request to a member.
	patience = 10 * time.Second
	// patienceAway limits the first request to a member that the host cannot reach.
	patienceAway = 2 * time.Second
)

// Kinds in trees and messages.
const (
	KindClaim        = "PersistentVolumeClaim"
	KindVolume       = "PersistentVolume"
	KindPod          = "Pod"
	KindSnapshot     = "VolumeSnapshot"
	KindClass        = "StorageClass"
	KindRegistration = "ClusterRegistration"
)

// Gathering reads the objects of a tree.
type Gathering struct {
	Facts
	host Reader
}

// NewGathering reads the host's registrations, and creates a Gathering.
func NewGathering(ctx context.Context, host client.Reader, now time.Time) *Gathering {
	g := &Gathering{Facts: Facts{Now: now, Members: map[string]bool{}}}
	g.host = Reader{Reader: host, Misses: &Misses{}}
	var list v1alpha1.ClusterRegistrationList
	switch err := host.List(ctx, &list); {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		g.host.RecordMissing("ClusterRegistrations", fmt.Errorf("the cluster does not serve this kind: Xylem is not installed, or the cluster is not the host"))
	case err != nil:
		g.host.RecordMissing("ClusterRegistrations", err)
	}
	g.Registrations = list.Items
	return g
}

// GatheredFacts returns what was read, and what could not be read.
func (g *Gathering) GatheredFacts() *Facts {
	g.Missing = g.host.Misses.AllMissing()
	return &g.Facts
}

// ReadPod reads a Pod and its claims.
func (g *Gathering) ReadPod(ctx context.Context, key types.NamespacedName) error {
	var pod corev1.Pod
	if err := g.readSubject(ctx, KindPod, key, &pod); err != nil {
		return err
	}
	g.Pod = &PodFacts{Pod: &pod, Events: g.host.ReadEvents(ctx, KindPod, &pod)}
	for _, name := range podspec.ClaimNamesOfPod(&pod) {
		g.Claims = append(g.Claims, g.claimFacts(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}))
	}
	return nil
}

// ReadClaim reads a claim and the Pods that use it, or the remaining objects of a deleted claim.
func (g *Gathering) ReadClaim(ctx context.Context, key types.NamespacedName) error {
	var claim corev1.PersistentVolumeClaim
	err := g.readSubject(ctx, KindClaim, key, &claim)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	c := g.claimFacts(ctx, key)
	if c.Claim == nil {
		c.Earlier = g.earlierVolumes(ctx, key)
		if len(c.Earlier) == 0 && len(g.OrphansOf(key)) == 0 {
			return err
		}
	}
	var pods corev1.PodList
	if err := g.host.List(ctx, &pods, client.InNamespace(key.Namespace)); err != nil {
		g.host.RecordMissing("the Pods in namespace "+key.Namespace, err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; slices.Contains(podspec.ClaimNamesOfPod(pod), key.Name) {
			c.Pods = append(c.Pods, PodFacts{Pod: pod, Events: g.host.ReadEvents(ctx, KindPod, pod)})
		}
	}
	g.Claims = []ClaimFacts{c}
	return nil
}

// ReadVolume reads a host PV, as the volume of its claim if that is, or was, bound to it.
func (g *Gathering) ReadVolume(ctx context.Context, name string) error {
	var volume corev1.PersistentVolume
	if err := g.host.Get(ctx, types.NamespacedName{Name: name}, &volume); err != nil {
		return fmt.Errorf("read %s %q: %w", KindVolume, name, err)
	}
	if ref := volume.Spec.ClaimRef; ref != nil {
		err := g.ReadClaim(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		if err == nil && (g.Claims[0].Claim == nil || g.Claims[0].Claim.Spec.VolumeName == name) {
			return nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	g.Claims = []ClaimFacts{{Volume: &volume, VolumeEvents: g.host.ReadEvents(ctx, KindVolume, &volume)}}
	return nil
}

// ReadSnapshot reads a VolumeSnapshot, its content and its claim.
func (g *Gathering) ReadSnapshot(ctx context.Context, key types.NamespacedName) error {
	var snapshot snapshotv1.VolumeSnapshot
	if err := g.readSubject(ctx, KindSnapshot, key, &snapshot); err != nil {
		return err
	}
	g.Snapshot = &SnapshotFacts{Snapshot: &snapshot, Events: g.host.ReadEvents(ctx, KindSnapshot, &snapshot)}
	if snapshot.Status != nil {
		g.Snapshot.Content = ReadNamed[snapshotv1.VolumeSnapshotContent](ctx, &g.host, "VolumeSnapshotContent", types.NamespacedName{Name: ptr.Deref(snapshot.Status.BoundVolumeSnapshotContentName, "")}).Item
	}
	if claim := ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, ""); claim != "" {
		g.Claims = []ClaimFacts{g.claimFacts(ctx, types.NamespacedName{Namespace: key.Namespace, Name: claim})}
	}
	return nil
}

// readSubject reads the requested object. If it does not exist, the error reports whether its namespace
// does.
func (g *Gathering) readSubject(ctx context.Context, kind string, key types.NamespacedName, into client.Object) error {
	err := g.host.Get(ctx, key, into)
	if !apierrors.IsNotFound(err) {
		if err != nil {
			return fmt.Errorf("read %s: %w", KindAndName(kind, key), err)
		}
		return nil
	}
	var namespace corev1.Namespace
	if apierrors.IsNotFound(g.host.Get(ctx, types.NamespacedName{Name: key.Namespace}, &namespace)) {
		return fmt.Errorf("the host has no namespace %q (use -n for another namespace, or --context for another cluster): %w", key.Namespace, err)
	}
	return fmt.Errorf("the host has no %s: %w", KindAndName(kind, key), err)
}

// claimFacts reads one claim and its volume, without its Pods.
func (g *Gathering) claimFacts(ctx context.Context, key types.NamespacedName) ClaimFacts {
	c := ClaimFacts{Key: key, Claim: ReadNamed[corev1.PersistentVolumeClaim](ctx, &g.host, KindClaim, key).Item}
	if c.Claim == nil {
		return c
	}
	c.Events = g.host.ReadEvents(ctx, KindClaim, c.Claim)
	name := hostpv.ClassNameOf(c.Claim)
	class := ReadNamed[storagev1.StorageClass](ctx, &g.host, KindClass, types.NamespacedName{Name: name})
	c.Class, c.ClassAbsent = class.Item, name != "" && class.Absent()
	c.Volume = ReadNamed[corev1.PersistentVolume](ctx, &g.host, KindVolume, types.NamespacedName{Name: c.Claim.Spec.VolumeName}).Item
	if c.Volume != nil {
		c.VolumeEvents = g.host.ReadEvents(ctx, KindVolume, c.Volume)
	}
	return c
}

// earlierVolumes returns the members' volumes whose claimRef refers to a claim.
func (g *Gathering) earlierVolumes(ctx context.Context, key types.NamespacedName) []corev1.PersistentVolume {
	return ReadList(ctx, &g.host, "PersistentVolumes that claim "+key.String()+" used", &corev1.PersistentVolumeList{}, func(l *corev1.PersistentVolumeList) []corev1.PersistentVolume {
		var found []corev1.PersistentVolume
		for i := range l.Items {
			pv := &l.Items[i]
			_, _, _, ours := hostpv.LeafOfHostVolume(pv)
			if ref := pv.Spec.ClaimRef; ref != nil && ref.Namespace == key.Namespace && ref.Name == key.Name && (ours || hostpv.IsPromise(pv)) {
				found = append(found, *pv)
			}
		}
		return found
	}).Items
}

// Orphan is a volume without a root in a member.
type Orphan struct {
	v1alpha1.OrphanedVolume
	Registration string
}

// OrphansOf returns the orphaned volumes in registrations' statuses that were created for a claim
// of this name.
func (f *Facts) OrphansOf(key types.NamespacedName) []Orphan {
	var found []Orphan
	for i := range f.Registrations {
		for _, o := range f.Registrations[i].Status.Orphans {
			if o.Claim == key.String() {
				found = append(found, Orphan{o, f.Registrations[i].Name})
			}
		}
	}
	return found
}

// textLimit is the maximum length, in bytes, of text from other writers.
const textLimit = 1024

// Plain returns text from another writer, sanitized and on one line.
func Plain(text string) string {
	return strings.Join(strings.Fields(mirror.PlainText(text, textLimit)), " ")
}
