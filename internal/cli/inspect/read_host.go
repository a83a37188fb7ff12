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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

const (
	// pageSize is the maximum number of objects in a page of a list.
	pageSize = 500
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

// reader reads one cluster, and records what it cannot read.
type reader struct {
	client.Reader
	cluster string // "" for the host
	missing *[]Missing
}

// miss records that something could not be read.
func (r reader) miss(what string, err error) {
	m := Missing{What: what, Cluster: r.cluster, Why: Plain(err.Error())}
	if !slices.Contains(*r.missing, m) {
		*r.missing = append(*r.missing, m)
	}
}

// find reads an object. found is false if the object is absent or could not be read. known
// distinguishes these cases.
func (r reader) find(ctx context.Context, kind string, key types.NamespacedName, into client.Object) (found, known bool) {
	if key.Name == "" {
		return false, true
	}
	err := r.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, true
	}
	if err != nil {
		r.miss(Named(kind, key), err)
		return false, false
	}
	return true, true
}

// events returns the events about an object.
func (r reader) events(ctx context.Context, kind string, obj client.Object) []corev1.Event {
	namespace := obj.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	var list corev1.EventList
	err := r.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(obj.GetUID())}, client.Limit(pageSize))
	if err != nil {
		r.miss("the events of "+Named(kind, client.ObjectKeyFromObject(obj)), err)
	}
	return list.Items
}

// Named returns an object's kind and name for messages.
func Named(kind string, key types.NamespacedName) string {
	if key.Namespace == "" {
		return kind + " " + key.Name
	}
	return kind + " " + key.String()
}

// Gathering reads the objects of a tree.
type Gathering struct {
	Facts
	host reader
}

// NewGathering reads the host's registrations, and creates a Gathering.
func NewGathering(ctx context.Context, host client.Reader, now time.Time) *Gathering {
	g := &Gathering{Facts: Facts{Now: now, Members: map[string]bool{}}}
	g.host = reader{Reader: host, missing: &g.Missing}
	var list v1alpha1.ClusterRegistrationList
	switch err := host.List(ctx, &list); {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		g.host.miss("ClusterRegistrations", fmt.Errorf("the cluster does not serve this kind: Xylem is not installed, or the cluster is not the host"))
	case err != nil:
		g.host.miss("ClusterRegistrations", err)
	}
	g.Registrations = list.Items
	return g
}

// OfPod reads a Pod and its claims.
func (g *Gathering) OfPod(ctx context.Context, key types.NamespacedName) error {
	var pod corev1.Pod
	if err := g.subject(ctx, KindPod, key, &pod); err != nil {
		return err
	}
	g.Pod = &PodFacts{Pod: &pod, Events: g.host.events(ctx, KindPod, &pod)}
	for _, name := range podspec.ClaimNames(&pod) {
		g.Claims = append(g.Claims, g.claim(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}))
	}
	return nil
}

// OfClaim reads a claim and the Pods that use it, or the remaining objects of a deleted claim.
func (g *Gathering) OfClaim(ctx context.Context, key types.NamespacedName) error {
	var claim corev1.PersistentVolumeClaim
	err := g.subject(ctx, KindClaim, key, &claim)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	c := g.claim(ctx, key)
	if c.Claim == nil {
		c.Earlier = g.earlier(ctx, key)
		if len(c.Earlier) == 0 && len(g.OrphansOf(key)) == 0 {
			return err
		}
	}
	var pods corev1.PodList
	if err := g.host.List(ctx, &pods, client.InNamespace(key.Namespace)); err != nil {
		g.host.miss("the Pods in namespace "+key.Namespace, err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; slices.Contains(podspec.ClaimNames(pod), key.Name) {
			c.Pods = append(c.Pods, PodFacts{Pod: pod, Events: g.host.events(ctx, KindPod, pod)})
		}
	}
	g.Claims = []ClaimFacts{c}
	return nil
}

// OfVolume reads a host PV, as the volume of its claim if that is, or was, bound to it.
func (g *Gathering) OfVolume(ctx context.Context, name string) error {
	var volume corev1.PersistentVolume
	if err := g.host.Get(ctx, types.NamespacedName{Name: name}, &volume); err != nil {
		return fmt.Errorf("read %s %q: %w", KindVolume, name, err)
	}
	if ref := volume.Spec.ClaimRef; ref != nil {
		err := g.OfClaim(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		if err == nil && (g.Claims[0].Claim == nil || g.Claims[0].Claim.Spec.VolumeName == name) {
			return nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	g.Claims = []ClaimFacts{{Volume: &volume, VolumeEvents: g.host.events(ctx, KindVolume, &volume)}}
	return nil
}

// OfSnapshot reads a VolumeSnapshot, its content and its claim.
func (g *Gathering) OfSnapshot(ctx context.Context, key types.NamespacedName) error {
	var snapshot snapshotv1.VolumeSnapshot
	if err := g.subject(ctx, KindSnapshot, key, &snapshot); err != nil {
		return err
	}
	g.Snapshot = &SnapshotFacts{Snapshot: &snapshot, Events: g.host.events(ctx, KindSnapshot, &snapshot)}
	if snapshot.Status != nil {
		var content snapshotv1.VolumeSnapshotContent
		if found, _ := g.host.find(ctx, "VolumeSnapshotContent", types.NamespacedName{Name: ptr.Deref(snapshot.Status.BoundVolumeSnapshotContentName, "")}, &content); found {
			g.Snapshot.Content = &content
		}
	}
	if claim := ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, ""); claim != "" {
		g.Claims = []ClaimFacts{g.claim(ctx, types.NamespacedName{Namespace: key.Namespace, Name: claim})}
	}
	return nil
}

// subject reads the requested object. If it does not exist, the error reports whether its namespace
// does.
func (g *Gathering) subject(ctx context.Context, kind string, key types.NamespacedName, into client.Object) error {
	err := g.host.Get(ctx, key, into)
	if !apierrors.IsNotFound(err) {
		if err != nil {
			return fmt.Errorf("read %s: %w", Named(kind, key), err)
		}
		return nil
	}
	var namespace corev1.Namespace
	if apierrors.IsNotFound(g.host.Get(ctx, types.NamespacedName{Name: key.Namespace}, &namespace)) {
		return fmt.Errorf("the host has no namespace %q (use -n for another namespace, or --context for another cluster): %w", key.Namespace, err)
	}
	return fmt.Errorf("the host has no %s: %w", Named(kind, key), err)
}

// claim reads one claim and its volume, without its Pods.
func (g *Gathering) claim(ctx context.Context, key types.NamespacedName) ClaimFacts {
	c := ClaimFacts{Key: key}
	var claim corev1.PersistentVolumeClaim
	if found, _ := g.host.find(ctx, KindClaim, key, &claim); !found {
		return c
	}
	c.Claim = &claim
	c.Events = g.host.events(ctx, KindClaim, &claim)
	var class storagev1.StorageClass
	name := hostclass.NameOf(&claim)
	found, known := g.host.find(ctx, KindClass, types.NamespacedName{Name: name}, &class)
	if found {
		c.Class = &class
	}
	c.ClassAbsent = name != "" && known && !found
	var volume corev1.PersistentVolume
	if found, _ := g.host.find(ctx, KindVolume, types.NamespacedName{Name: claim.Spec.VolumeName}, &volume); found {
		c.Volume = &volume
		c.VolumeEvents = g.host.events(ctx, KindVolume, &volume)
	}
	return c
}

// earlier returns the members' volumes whose claimRef refers to a claim.
func (g *Gathering) earlier(ctx context.Context, key types.NamespacedName) []corev1.PersistentVolume {
	var found []corev1.PersistentVolume
	var list corev1.PersistentVolumeList
	for {
		err := g.host.List(ctx, &list, client.Limit(pageSize), client.Continue(list.Continue))
		if err != nil {
			g.host.miss("PersistentVolumes that claim "+key.String()+" used", err)
			return found
		}
		for i := range list.Items {
			pv := &list.Items[i]
			_, _, _, ours := hostpv.LeafOf(pv)
			if ref := pv.Spec.ClaimRef; ref != nil && ref.Namespace == key.Namespace && ref.Name == key.Name && (ours || hostpv.IsPromise(pv)) {
				found = append(found, *pv)
			}
		}
		if list.Continue == "" {
			return found
		}
	}
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
	return strings.Join(strings.Fields(sanitize.Plain(text, textLimit)), " ")
}
