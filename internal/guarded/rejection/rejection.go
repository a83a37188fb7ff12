// Package rejection reports to users which of Xylem's writes the host or a member rejects.
package rejection

import (
	"context"
	"strconv"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

const (
	// persists is how long an API server must reject a write until Reporter reports it. A shorter
	// rejection, for example while an admin updates a policy, requires no action.
	persists = 3 * time.Second
	// hangs is the maximum of Patience.
	hangs = 20 * time.Second
	// memory is how long a rejection is recorded. It exceeds the longest delay between two attempts
	// of a controller, which is 1,000 s (client-go's DefaultTypedControllerRateLimiter).
	memory = 30 * time.Minute
)

// Patience returns how long an API server must not respond to a write until a Reporter reports it,
// if the members' fences last for the given time. If the API server responds to no request at all,
// the link to the member, or this process's leadership, ends earlier.
func Patience(fence time.Duration) time.Duration { return min(hangs, fence) }

// Reporter is a client that observes the results of its writes. If the API server repeatedly rejects
// a write or does not respond to it, Reporter emits an event on the host's object that the write is
// for and, for a claim, on the claim's Pods. Most controllers retry such writes without a report of
// their own.
type Reporter struct {
	client.Client
	// host reads the host's Pods from its cache.
	host     client.Reader
	recorder events.EventRecorder
	clock    clock.Clock
	patience time.Duration   // see Patience
	first    *cache.Expiring // write -> time.Time of the first rejection
	// userOf returns the host's object that a write is for, or nil if nobody needs a report.
	userOf func(doing string, obj client.Object, err error) client.Object
	// problem describes the rejection. doing is the verb, and what describes the object.
	problem func(doing, what string, err error) *mirror.Refusal
}

// OfHost returns a Reporter for writes to the host.
func OfHost(c client.Client, recorder events.EventRecorder, clk clock.Clock, patience time.Duration) *Reporter {
	return &Reporter{c, c, recorder, clk, patience, cache.NewExpiringWithClock(clk), func(_ string, obj client.Object, _ error) client.Object { return userOf(obj) }, report.RefusedByHost}
}

// OfMember returns a Reporter for writes to a member. It does not report rejections that the
// controllers report themselves: of new objects, and of changes to Pods and claims.
func OfMember(c client.Client, hostID, registration string, host client.Reader, recorder events.EventRecorder, clk clock.Clock, patience time.Duration) *Reporter {
	user := func(doing string, obj client.Object, err error) client.Object {
		origin, ours := mirror.OriginIn(hostID, obj)
		if !ours || !report.Unanswered(err) && reported(doing, obj) {
			return nil
		}
		return rootOf(obj, origin)
	}
	return &Reporter{c, host, recorder, clk, patience, cache.NewExpiringWithClock(clk), user, func(doing, what string, err error) *mirror.Refusal {
		return report.RejectedByMember(registration, doing, what, err)
	}}
}

func reported(doing string, obj client.Object) bool {
	switch obj.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim:
		return doing != deletes
	}
	return doing == creates
}

// write identifies a write. An object to create has no UID.
type write struct {
	doing, part, kind, owner string
	client.ObjectKey
}

const (
	creates = "create"
	changes = "change"
	deletes = "delete"

	whole      = ""
	statusPart = "the status of "
)

// Create implements client.Writer.
func (r *Reporter) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	err := r.Client.Create(ctx, obj, opts...)
	owner := (&client.CreateOptions{}).ApplyOptions(opts)
	if len(owner.DryRun) == 0 {
		r.observe(ctx, creates, whole, owner.FieldManager, obj, err)
	}
	return err
}

// Patch implements client.Writer.
func (r *Reporter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	err := r.Client.Patch(ctx, obj, patch, opts...)
	r.observe(ctx, changes, whole, (&client.PatchOptions{}).ApplyOptions(opts).FieldManager, obj, err)
	return err
}

// Delete implements client.Writer.
func (r *Reporter) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	err := r.Client.Delete(ctx, obj, opts...)
	r.observe(ctx, deletes, whole, "", obj, err)
	return err
}

// Status implements client.StatusClient.
func (r *Reporter) Status() client.SubResourceWriter { return status{r.Client.Status(), r} }

type status struct {
	client.SubResourceWriter
	r *Reporter
}

// Patch implements client.SubResourceWriter.
func (s status) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	err := s.SubResourceWriter.Patch(ctx, obj, patch, opts...)
	s.r.observe(ctx, changes, statusPart, (&client.SubResourcePatchOptions{}).ApplyOptions(opts).FieldManager, obj, err)
	return err
}

// Apply implements client.SubResourceWriter.
func (s status) Apply(ctx context.Context, applied runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	err := s.SubResourceWriter.Apply(ctx, applied, opts...)
	if obj, ok := applied.(client.Object); ok {
		s.r.observe(ctx, changes, statusPart, (&client.SubResourceApplyOptions{}).ApplyOpts(opts).FieldManager, obj, err)
	}
	return err
}

// observe records a write's result, and reports a rejection that persists.
func (r *Reporter) observe(ctx context.Context, doing, part, owner string, obj client.Object, err error) {
	kind := "object"
	if gvk, unknown := r.GroupVersionKindFor(obj); unknown == nil {
		kind = gvk.Kind
	}
	w := write{doing, part, kind, owner, client.ObjectKeyFromObject(obj)}
	patience := persists
	switch {
	case err == nil:
		r.first.Delete(w)
		return
	case ctx.Err() != nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return
	case report.Unanswered(err):
		patience = r.patience
	case !report.Rejected(err):
		return
	}
	if since, rejected := r.since(w); !rejected || r.clock.Since(since) < patience {
		return
	}
	if about := r.userOf(doing, obj, err); about != nil {
		r.emitEvent(ctx, about, r.problem(doing, part+kind+" "+strconv.Quote(obj.GetName()), err))
	}
}

// since returns when the API server first rejected a write, and reports whether it did so before. It
// extends the record's life.
func (r *Reporter) since(w write) (time.Time, bool) {
	value, _ := r.first.Get(w)
	since, rejected := value.(time.Time)
	if !rejected {
		since = r.clock.Now()
	}
	r.first.Set(w, since, memory)
	return since, rejected
}

// emitEvent emits the event.
func (r *Reporter) emitEvent(ctx context.Context, about client.Object, problem *mirror.Refusal) {
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, problem.Reason, "Write", "%s", problem.Message)
	if about.GetObjectKind().GroupVersionKind() != claimKind {
		return
	}
	pods, err := index.PodsOfClaim(ctx, r.host, client.ObjectKeyFromObject(about))
	if err != nil {
		ctrllog.FromContext(ctx).V(1).Info("cannot find the claim's Pods", "cause", err.Error())
	}
	for i := range pods {
		if !podstatus.Finished(&pods[i]) {
			r.recorder.Eventf(&pods[i], nil, corev1.EventTypeWarning, problem.Reason, "Write", "claim %q: %s", about.GetName(), problem.Message)
		}
	}
}

var (
	claimKind    = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	snapshotKind = snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshot")
)

// userOf returns the host's object for which Xylem writes an object in the host: a volume's claim, a
// content's snapshot, or a capacity's registration. For all other objects, it returns the object
// itself.
func userOf(obj client.Object) client.Object {
	switch o := obj.(type) {
	case *corev1.PersistentVolume:
		if claim := o.Spec.ClaimRef; claim != nil {
			return reference(claimKind, claim.Namespace, claim.Name, claim.UID)
		}
	case *corev1.PersistentVolumeClaim:
		return reference(claimKind, o.Namespace, o.Name, o.UID)
	case *snapshotv1.VolumeSnapshotContent:
		snapshot := o.Spec.VolumeSnapshotRef
		return reference(snapshotKind, snapshot.Namespace, snapshot.Name, snapshot.UID)
	case *storagev1.CSIStorageCapacity:
		if len(o.OwnerReferences) > 0 {
			owner := o.OwnerReferences[0]
			return reference(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), metav1.NamespaceNone, owner.Name, owner.UID)
		}
	}
	return obj
}

// rootOf returns the root of a leaf object, or nil for copies of ConfigMaps and Secrets, whose
// problems the Pods that use them report.
func rootOf(leaf client.Object, origin mirror.Origin) client.Object {
	var kind schema.GroupVersionKind
	switch leaf.(type) {
	case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:
		kind = claimKind
	case *snapshotv1.VolumeSnapshotContent, *snapshotv1.VolumeSnapshot:
		kind = snapshotKind
	case *corev1.Pod:
		kind = corev1.SchemeGroupVersion.WithKind("Pod")
	case *corev1.Namespace:
		kind = corev1.SchemeGroupVersion.WithKind("Namespace")
	default:
		return nil
	}
	return reference(kind, origin.Root.Namespace, origin.Root.Name, origin.UID)
}

func reference(kind schema.GroupVersionKind, namespace, name string, uid types.UID) client.Object {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}}
	obj.SetGroupVersionKind(kind)
	return obj
}
