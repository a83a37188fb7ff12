package rootpvc

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// observerOf a member observes snapshots too, as far as they are served.
func observerOf(l *member.Link) observe.Observer {
	o := observe.Observer{
		Prover: l.Proof(), Rules: l.Rules, HostSnapshots: l.HostSnapshots.Cache() != nil, LeafSnapshots: l.LeafSnapshots(),
	}
	if l.Snapshots != nil {
		o.SnapshotProblem, _ = l.Snapshots.Problem()
	}
	return o
}

// withSource completes the leaf claim of a root that is to be created from a data source; nil if
// it is not to be created now. It is the same leaf claim for a root without one, and for a volume
// that exists.
func (r *reconciler) withSource(ctx context.Context, o observe.Claim, leaf *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	source, has := datasource.Of(o.Root)
	if !has || o.Observed.Name != "" {
		return leaf, nil
	}
	if source.Placed() {
		uid, proven, err := r.Proof().SourceHere(ctx, o.Root)
		if err != nil || !proven {
			return nil, err
		}
		leaf = pvc.WithSource(leaf, uid)
	}
	return leaf, r.keepsSource(ctx, o, leaf)
}

// keepsSource proves, by a dry run, that the member's API server keeps the data source. An old one,
// or an admission webhook, may drop it: the claim would get an empty disk.
func (r *reconciler) keepsSource(ctx context.Context, o observe.Claim, leaf *corev1.PersistentVolumeClaim) error {
	tried := leaf.DeepCopy()
	if err := r.Leaf.TryCreate(ctx, actor, tried); err != nil {
		return r.notCreated(ctx, o, leaf, err)
	}
	if datasource.Same(o.Root, tried) {
		return nil
	}
	source, _ := datasource.Of(o.Root)
	problem := &mirror.Refusal{Reason: v1alpha1.ReasonDataSourceUnsupported, Message: fmt.Sprintf(
		"member %q drops the claim's data source, %s: the claim would get an empty disk there, so Xylem does not create it. Ask the member's admin which admission webhook removes spec.dataSource or spec.dataSourceRef, or whether the cluster is older than Kubernetes 1.24",
		r.Registration, source)}
	if err := r.setPlaced(ctx, o.Root, problem); err != nil {
		return err
	}
	return problem // no watch reports a change of that: try again, at a bounded rate
}

// reassigned reports whether recovery assigned the claim to another member, and no data source
// did.
func reassigned(root *corev1.PersistentVolumeClaim) bool {
	source, has := datasource.Of(root)
	if has && source.Placed() {
		return false
	}
	return root.Annotations[v1alpha1.AnnotationSteeredTo] != ""
}

// withClones enqueues claims, and those that are to be created from them.
func (r *reconciler) withClones(ctx context.Context, requests []reconcile.Request) []reconcile.Request {
	for _, request := range requests {
		requests = append(requests, r.clones(ctx, request.NamespacedName)...)
	}
	return requests
}

// clones enqueues the claims that are to be created from a claim, by its name.
func (r *reconciler) clones(ctx context.Context, claim types.NamespacedName) []reconcile.Request {
	found, err := index.ClaimsFrom(ctx, r.Host, claim.Namespace, datasource.ClaimKey(claim.Name))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the claims that are to be created from a claim", "root", claim)
	}
	requests := make([]reconcile.Request, 0, len(found))
	for i := range found {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found[i])})
	}
	return requests
}

// ofSnapshot enqueues the claims that are to be created from a VolumeSnapshot, or from that of a
// content, by its name in either cluster.
func (r *reconciler) ofSnapshot(ctx context.Context, obj client.Object) []reconcile.Request {
	claims, err := index.RestoresOf(ctx, r.Host, index.SnapshotNamed(obj))
	return route.RequestsFor[corev1.PersistentVolumeClaim](ctx, claims, err, nil)
}

// restores enqueues the claims that are to be created from a snapshot: whether the member's snapshots
// can be read has changed.
func (r *reconciler) restores(ctx context.Context, _ string) []reconcile.Request {
	return r.claims(ctx, metav1.NamespaceAll, func(claim *corev1.PersistentVolumeClaim) bool {
		source, has := datasource.Of(claim)
		return has && source.IsSnapshot() && (claim.Spec.VolumeName == "" || hostpv.NamesPromise(claim.Spec.VolumeName))
	})
}

// ofSource enqueues what depends on where a root claim is: the claims that are to be created from
// it, and, if it has a data source itself, the others of its Pods, which wait until it is known
// whether that is here.
func (r *reconciler) ofSource(ctx context.Context, root client.Object) []reconcile.Request {
	requests := r.clones(ctx, client.ObjectKeyFromObject(root))
	if claim, ok := root.(*corev1.PersistentVolumeClaim); ok && datasource.Has(claim) && claim.Spec.VolumeName == "" {
		requests = append(requests, r.SharingPods(ctx, claim)...)
	}
	return requests
}
