package tree

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

const (
	// pageSize of lists.
	pageSize = 500
	// patience with one request to a member.
	patience = 10 * time.Second
)

// Kinds as trees and messages name them.
const (
	kindClaim        = "PersistentVolumeClaim"
	kindVolume       = "PersistentVolume"
	kindPod          = "Pod"
	kindRegistration = "ClusterRegistration"
)

// reader reads one cluster, and notes what it cannot.
type reader struct {
	client.Reader
	cluster string // empty for the host
	missing *[]Missing
}

// miss notes what could not be read.
func (r reader) miss(what string, err error) {
	m := Missing{What: what, Cluster: r.cluster, Why: plain(err.Error())}
	if !slices.Contains(*r.missing, m) {
		*r.missing = append(*r.missing, m)
	}
}

// find reads an object; false if it is not there, or could not be read. known is
// whether one of the two is certain.
func (r reader) find(ctx context.Context, kind string, key types.NamespacedName, into client.Object) (found, known bool) {
	if key.Name == "" {
		return false, true
	}
	err := r.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, true
	}
	if err != nil {
		r.miss(named(kind, key), err)
		return false, false
	}
	return true, true
}

// events about an object.
func (r reader) events(ctx context.Context, kind string, obj client.Object) []corev1.Event {
	namespace := obj.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	var list corev1.EventList
	err := r.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(obj.GetUID())}, client.Limit(pageSize))
	if err != nil {
		r.miss("the events of "+named(kind, client.ObjectKeyFromObject(obj)), err)
	}
	return list.Items
}

// named is an object as people name it.
func named(kind string, key types.NamespacedName) string {
	if key.Namespace == "" {
		return kind + " " + key.Name
	}
	return kind + " " + key.String()
}

// gathering reads the host's side.
type gathering struct {
	facts
	host reader
}

func gather(ctx context.Context, host client.Reader, now time.Time) *gathering {
	g := &gathering{facts: facts{now: now, members: map[string]bool{}}}
	g.host = reader{Reader: host, missing: &g.missing}
	var list v1alpha1.ClusterRegistrationList
	switch err := host.List(ctx, &list); {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		g.host.miss("ClusterRegistrations", fmt.Errorf("this cluster knows no such kind: Xylem is not installed here, or the current context is not the host"))
	case err != nil:
		g.host.miss("ClusterRegistrations", err)
	}
	g.registrations = list.Items
	return g
}

// ofPod gathers a Pod and its claims.
func (g *gathering) ofPod(ctx context.Context, key types.NamespacedName) error {
	var pod corev1.Pod
	if err := g.subject(ctx, kindPod, key, &pod); err != nil {
		return err
	}
	g.pod = &podFacts{pod: &pod, events: g.host.events(ctx, kindPod, &pod)}
	for _, name := range mirror.ClaimNames(&pod) {
		g.claims = append(g.claims, g.claim(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}))
	}
	return nil
}

// ofClaim gathers a claim and the Pods that use it. Of one that is gone, what is
// left of it.
func (g *gathering) ofClaim(ctx context.Context, key types.NamespacedName) error {
	var claim corev1.PersistentVolumeClaim
	err := g.subject(ctx, kindClaim, key, &claim)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	c := g.claim(ctx, key)
	if c.claim == nil {
		c.earlier = g.earlier(ctx, key)
		if len(c.earlier) == 0 && len(g.orphansOf(key)) == 0 {
			return err
		}
	}
	var pods corev1.PodList
	if err := g.host.List(ctx, &pods, client.InNamespace(key.Namespace)); err != nil {
		g.host.miss("the Pods in namespace "+key.Namespace, err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; slices.Contains(mirror.ClaimNames(pod), key.Name) {
			c.pods = append(c.pods, podFacts{pod: pod, events: g.host.events(ctx, kindPod, pod)})
		}
	}
	g.claims = []claimFacts{c}
	return nil
}

// subject reads what was asked for. If it is not there, the error says whether its
// namespace is.
func (g *gathering) subject(ctx context.Context, kind string, key types.NamespacedName, into client.Object) error {
	err := g.host.Get(ctx, key, into)
	if !apierrors.IsNotFound(err) {
		if err != nil {
			return fmt.Errorf("read %s: %w", named(kind, key), err)
		}
		return nil
	}
	var namespace corev1.Namespace
	if apierrors.IsNotFound(g.host.Get(ctx, types.NamespacedName{Name: key.Namespace}, &namespace)) {
		return fmt.Errorf("there is no namespace %s in the host (-n chooses another, --context another cluster): %w", key.Namespace, err)
	}
	return fmt.Errorf("there is no %s in the host: %w", named(kind, key), err)
}

// claim gathers one claim and its volume; without its Pods.
func (g *gathering) claim(ctx context.Context, key types.NamespacedName) claimFacts {
	c := claimFacts{key: key}
	var claim corev1.PersistentVolumeClaim
	if found, _ := g.host.find(ctx, kindClaim, key, &claim); !found {
		return c
	}
	c.claim = &claim
	c.events = g.host.events(ctx, kindClaim, &claim)
	var class storagev1.StorageClass
	if found, _ := g.host.find(ctx, "StorageClass", types.NamespacedName{Name: mirror.ClassName(&claim)}, &class); found {
		c.class = &class
	}
	var volume corev1.PersistentVolume
	if found, _ := g.host.find(ctx, kindVolume, types.NamespacedName{Name: claim.Spec.VolumeName}, &volume); found {
		c.volume = &volume
		c.volumeEvents = g.host.events(ctx, kindVolume, &volume)
	}
	return c
}

// earlier are the volumes of members whose claimRef names a claim.
func (g *gathering) earlier(ctx context.Context, key types.NamespacedName) []corev1.PersistentVolume {
	var found []corev1.PersistentVolume
	var list corev1.PersistentVolumeList
	for {
		err := g.host.List(ctx, &list, client.Limit(pageSize), client.Continue(list.Continue))
		if err != nil {
			g.host.miss("PersistentVolumes that claim "+key.String()+" had", err)
			return found
		}
		for i := range list.Items {
			pv := &list.Items[i]
			_, _, _, ours := mirror.LeafVolumeOf(pv)
			if ref := pv.Spec.ClaimRef; ref != nil && ref.Namespace == key.Namespace && ref.Name == key.Name && (ours || mirror.IsPromise(pv)) {
				found = append(found, *pv)
			}
		}
		if list.Continue == "" {
			return found
		}
	}
}

// orphan is a volume of a member that has no root.
type orphan struct {
	v1alpha1.OrphanedVolume
	registration string
}

// orphansOf are the volumes without a root that were made for a claim of that name,
// as far as registrations name them.
func (f *facts) orphansOf(key types.NamespacedName) []orphan {
	var found []orphan
	for i := range f.registrations {
		for _, o := range f.registrations[i].Status.Orphans {
			if o.Claim == key.String() {
				found = append(found, orphan{o, f.registrations[i].Name})
			}
		}
	}
	return found
}
