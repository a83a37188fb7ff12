package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/fault/oracle"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/fault/scenario"
)

// bench is a rig with canaries. It executes one run after another.
type bench struct {
	*rig.Rig
	canaries []canary
	patience time.Duration
	// panics are the manager's panics since the last run was judged
	panics []string
}

// panicked returns the manager's panics since the last run was judged, including recovered ones.
func (b *bench) panicked() []string {
	if err := b.Panics(); err != nil {
		b.panics = append(b.panics, err.Error())
	}
	return b.panics
}

func newBench(ctx context.Context, o rig.Options, patience time.Duration) (*bench, error) {
	r, err := rig.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	b := &bench{Rig: r, patience: patience}
	if b.canaries, err = makeCanaries(ctx, r); err != nil {
		return nil, errors.Join(err, r.Stop(ctx))
	}
	return b, nil
}

// start records the state at the start of a run.
type start struct {
	at       time.Time
	marks    map[string]controlplane.Mark
	volumes  map[string]bool // PVs and contents: cluster/name
	canaries []string
}

func (b *bench) begin(ctx context.Context) (*start, error) {
	s := &start{at: time.Now(), volumes: map[string]bool{}}
	var err error
	if s.marks, err = b.marks(ctx); err != nil {
		return nil, err
	}
	for _, c := range b.Clusters() {
		var list corev1.PersistentVolumeList
		if err := c.API.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("list volumes of %s: %w", c.Name(), err)
		}
		for i := range list.Items {
			s.volumes[c.Name()+"/"+list.Items[i].Name] = true
		}
		var contents snapshotv1.VolumeSnapshotContentList
		if err := c.API.List(ctx, &contents); err != nil {
			return nil, fmt.Errorf("list contents of %s: %w", c.Name(), err)
		}
		for i := range contents.Items {
			s.volumes[c.Name()+"/"+contents.Items[i].Name] = true
		}
	}
	s.canaries, err = versions(ctx, b.canaries)
	b.Witness.Forget()
	return s, err
}

// marks returns the current ends of all audit logs.
func (b *bench) marks(ctx context.Context) (map[string]controlplane.Mark, error) {
	marks := map[string]controlplane.Mark{}
	for _, c := range b.Clusters() {
		mark, err := c.Audit().Mark(ctx)
		if err != nil {
			return nil, err
		}
		marks[c.Name()] = mark
	}
	return marks, nil
}

// since returns the requests that Xylem's own users have made since the marks.
func (b *bench) since(ctx context.Context, marks map[string]controlplane.Mark) (map[string]controlplane.Requests, error) {
	all := map[string]controlplane.Requests{}
	for _, c := range b.Clusters() {
		requests, err := c.Audit().Since(ctx, marks[c.Name()])
		if err != nil {
			return nil, err
		}
		all[c.Name()] = requests.By(b.User(c))
	}
	return all, nil
}

// evidence collects the evidence of a run.
func (b *bench) evidence(ctx context.Context, w *scenario.World, s *start) (oracle.Evidence, error) {
	e := oracle.Evidence{
		Namespace: w.Namespace, Host: rig.Host, IDs: maps.Clone(b.IDs), Began: s.at, History: b.Witness.Seen(),
		Ledgers: map[string]*ledger.Ledger{}, Orphaned: map[string]int{}, OrphanedSnapshots: map[string]int{},
	}
	var err error
	for _, m := range b.Members() {
		if e.Ledgers[m.Name()], err = m.Ledger(); err != nil {
			return e, err
		}
	}
	if err := b.orphaned(ctx, e.Orphaned, e.OrphanedSnapshots); err != nil {
		return e, err
	}
	if e.Requests, err = b.since(ctx, s.marks); err != nil {
		return e, err
	}
	after, err := versions(ctx, b.canaries)
	if err != nil {
		return e, err
	}
	e.Canaries = compared(b.canaries, s.canaries, after)
	if e.Live, err = b.live(ctx); err != nil {
		return e, err
	}
	e.State, err = b.state(ctx, w.Namespace, s)
	return e, err
}

// orphaned counts the volumes and snapshots that the registrations report as orphaned, by member.
func (b *bench) orphaned(ctx context.Context, volumes, snapshots map[string]int) error {
	var registrations v1alpha1.ClusterRegistrationList
	if err := b.Host.API.List(ctx, &registrations); err != nil {
		return fmt.Errorf("list registrations: %w", err)
	}
	for i := range registrations.Items {
		for name, id := range b.IDs {
			if cr := &registrations.Items[i]; cr.Status.ClusterID == id {
				volumes[name] += int(cr.Status.Volumes.Orphaned)
				snapshots[name] += int(cr.Status.Snapshots.Orphaned)
			}
		}
	}
	return nil
}

// live returns the claims, volumes, Pods, snapshots and contents of all clusters.
func (b *bench) live(ctx context.Context) ([]oracle.Sighting, error) {
	var all []oracle.Sighting
	for _, c := range b.Clusters() {
		for _, list := range []client.ObjectList{
			&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &corev1.PodList{},
			&snapshotv1.VolumeSnapshotList{}, &snapshotv1.VolumeSnapshotContentList{},
		} {
			if err := c.API.List(ctx, list); err != nil {
				return nil, fmt.Errorf("list %T of %s: %w", list, c.Name(), err)
			}
			items, err := meta.ExtractList(list)
			if err != nil {
				return nil, fmt.Errorf("list %T of %s: %w", list, c.Name(), err)
			}
			for _, item := range items {
				if obj, ok := item.(client.Object); ok {
					all = append(all, oracle.Sighting{At: time.Now(), Cluster: c.Name(), Object: obj})
				}
			}
		}
	}
	return all, nil
}

// publishedCA is a ConfigMap that Kubernetes creates in every namespace. state ignores it, because
// it still exists at the end of a run: Xylem deletes a member's namespace only later.
const publishedCA = "kube-root-ca.crt"

// state returns the normalized end state: the namespace's objects in all clusters, and the new
// volumes and contents.
func (b *bench) state(ctx context.Context, namespace string, s *start) ([]string, error) {
	var objects []oracle.Object
	for _, c := range b.Clusters() {
		for _, kind := range []string{"PersistentVolumeClaim", "PersistentVolume", "Pod", "ConfigMap", "Secret", "VolumeSnapshot", "VolumeSnapshotContent"} {
			list := &unstructured.UnstructuredList{}
			version := corev1.SchemeGroupVersion
			if strings.HasPrefix(kind, "VolumeSnapshot") {
				version = snapshotv1.SchemeGroupVersion
			}
			list.SetGroupVersionKind(version.WithKind(kind + "List"))
			clusterScoped := kind == "PersistentVolume" || kind == "VolumeSnapshotContent"
			in := namespace
			if clusterScoped {
				in = ""
			}
			if err := c.API.List(ctx, list, client.InNamespace(in)); err != nil {
				return nil, fmt.Errorf("list %ss of %s: %w", kind, c.Name(), err)
			}
			for _, item := range list.Items {
				if clusterScoped && s.volumes[c.Name()+"/"+item.GetName()] || kind == "ConfigMap" && item.GetName() == publishedCA {
					continue
				}
				objects = append(objects, oracle.Object{Cluster: c.Name(), Unstructured: item})
			}
		}
	}
	return oracle.Normalise(objects, namespace, b.IDs), nil
}
