// This file reports to users which of Xylem's writes the host or a member rejects.

package guarded

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
	// reportAfter is how long an API server must reject a write until RejectionReporter reports it. A shorter
	// rejection, for example while an admin updates a policy, requires no action.
	reportAfter = 3 * time.Second
	// maxUnansweredPatience is the maximum of UnansweredPatience.
	maxUnansweredPatience = 20 * time.Second
	// rejectionMemory is how long a rejection is recorded. It exceeds the longest delay between two attempts
	// of a controller, which is 1,000 s (client-go's DefaultTypedControllerRateLimiter).
	rejectionMemory = 30 * time.Minute
)

// UnansweredPatience returns how long an API server must not respond to a write until a RejectionReporter reports it,
// if the members' fences last for the given time. If the API server responds to no request at all,
// the link to the member, or this process's leadership, ends earlier.
func UnansweredPatience(fence time.Duration) time.Duration { return min(maxUnansweredPatience, fence) }

// RejectionReporter is a client that observes the results of its writes. If the API server repeatedly rejects
// a write or does not respond to it, RejectionReporter emits an event on the host's object that the write is
// for and, for a claim, on the claim's Pods. Most controllers retry such writes without a report of
// their own.
type RejectionReporter struct {
	client.Client
	// host reads the host's Pods from its cache.
	host               client.Reader
	recorder           events.EventRecorder
	clock              clock.Clock
	unansweredPatience time.Duration   // see UnansweredPatience
	firstRejections    *cache.Expiring // write -> time.Time of the first rejection
	// affectedObject returns the host's object that a write is for, or nil if nobody needs a report.
	affectedObject func(doing string, obj client.Object, err error) client.Object
	// describeRejection describes the rejection. doing is the verb, and what describes the object.
	describeRejection func(doing, what string, err error) *mirror.Refusal
}

// NewHostReporter returns a RejectionReporter for writes to the host.
func NewHostReporter(c client.Client, recorder events.EventRecorder, clk clock.Clock, patience time.Duration) *RejectionReporter {
	return &RejectionReporter{c, c, recorder, clk, patience, cache.NewExpiringWithClock(clk), func(_ string, obj client.Object, _ error) client.Object { return userObjectOf(obj) }, report.RepeatedHostWriteRefusal}
}

// NewMemberReporter returns a RejectionReporter for writes to a member. It does not report rejections that the
// controllers report themselves: of new objects, and of changes to Pods and claims.
func NewMemberReporter(c client.Client, hostID, registration string, host client.Reader, recorder events.EventRecorder, clk clock.Clock, patience time.Duration) *RejectionReporter {
	user := func(doing string, obj client.Object, err error) client.Object {
		origin, ours := mirror.LeafOriginFromHost(hostID, obj)
		if !ours || !report.IsUnansweredWrite(err) && isReportedByController(doing, obj) {
			return nil
		}
		return rootReferenceOf(obj, origin)
	}
	return &RejectionReporter{c, host, recorder, clk, patience, cache.NewExpiringWithClock(clk), user, func(doing, what string, err error) *mirror.Refusal {
		return report.RepeatedMemberWriteRefusal(registration, doing, what, err)
	}}
}

func isReportedByController(doing string, obj client.Object) bool {
	switch obj.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim:
		return doing != verbDelete
	}
	return doing == verbCreate
}

// rejectedWrite identifies a write. An object to create has no UID.
type rejectedWrite struct {
	verb, part, kind, owner string
	client.ObjectKey
}

const (
	verbCreate = "create"
	verbChange = "change"
	verbDelete = "delete"

	wholeObject = ""
	statusPart  = "the status of "
)

// Create implements client.Writer.
func (r *RejectionReporter) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	err := r.Client.Create(ctx, obj, opts...)
	owner := (&client.CreateOptions{}).ApplyOptions(opts)
	if len(owner.DryRun) == 0 {
		r.observeResult(ctx, verbCreate, wholeObject, owner.FieldManager, obj, err)
	}
	return err
}

// Patch implements client.Writer.
func (r *RejectionReporter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	err := r.Client.Patch(ctx, obj, patch, opts...)
	r.observeResult(ctx, verbChange, wholeObject, (&client.PatchOptions{}).ApplyOptions(opts).FieldManager, obj, err)
	return err
}

// Delete implements client.Writer.
func (r *RejectionReporter) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	err := r.Client.Delete(ctx, obj, opts...)
	r.observeResult(ctx, verbDelete, wholeObject, "", obj, err)
	return err
}

// Status implements client.StatusClient.
func (r *RejectionReporter) Status() client.SubResourceWriter {
	return statusReporter{r.Client.Status(), r}
}

type statusReporter struct {
	client.SubResourceWriter
	reporter *RejectionReporter
}

// Patch implements client.SubResourceWriter.
func (s statusReporter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	err := s.SubResourceWriter.Patch(ctx, obj, patch, opts...)
	s.reporter.observeResult(ctx, verbChange, statusPart, (&client.SubResourcePatchOptions{}).ApplyOptions(opts).FieldManager, obj, err)
	return err
}

// Apply implements client.SubResourceWriter.
func (s statusReporter) Apply(ctx context.Context, applied runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	err := s.SubResourceWriter.Apply(ctx, applied, opts...)
	if obj, ok := applied.(client.Object); ok {
		s.reporter.observeResult(ctx, verbChange, statusPart, (&client.SubResourceApplyOptions{}).ApplyOpts(opts).FieldManager, obj, err)
	}
	return err
}

// SubResource implements client.SubResourceClientConstructor.
func (r *RejectionReporter) SubResource(name string) client.SubResourceClient {
	return subresourceReporter{r.Client.SubResource(name), r, "the subresource " + name + " of "}
}

type subresourceReporter struct {
	client.SubResourceClient
	reporter *RejectionReporter
	part     string
}

// Patch implements client.SubResourceWriter.
func (s subresourceReporter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	err := s.SubResourceClient.Patch(ctx, obj, patch, opts...)
	s.reporter.observeResult(ctx, verbChange, s.part, (&client.SubResourcePatchOptions{}).ApplyOptions(opts).FieldManager, obj, err)
	return err
}

// observeResult records a write's result, and reports a rejection that persists.
func (r *RejectionReporter) observeResult(ctx context.Context, doing, part, owner string, obj client.Object, err error) {
	kind := "object"
	if gvk, unknown := r.GroupVersionKindFor(obj); unknown == nil {
		kind = gvk.Kind
	}
	w := rejectedWrite{doing, part, kind, owner, client.ObjectKeyFromObject(obj)}
	patience := reportAfter
	switch {
	case err == nil:
		r.firstRejections.Delete(w)
		return
	case ctx.Err() != nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return
	case report.IsUnansweredWrite(err):
		patience = r.unansweredPatience
	case !report.IsRejectedWrite(err):
		return
	}
	if since, rejected := r.firstRejectedAt(w); !rejected || r.clock.Since(since) < patience {
		return
	}
	if about := r.affectedObject(doing, obj, err); about != nil {
		r.emitEvent(ctx, about, r.describeRejection(doing, part+kind+" "+strconv.Quote(obj.GetName()), err))
	}
}

// firstRejectedAt returns when the API server first rejected a write, and reports whether it did so before. It
// extends the record's life.
func (r *RejectionReporter) firstRejectedAt(w rejectedWrite) (time.Time, bool) {
	value, _ := r.firstRejections.Get(w)
	since, rejected := value.(time.Time)
	if !rejected {
		since = r.clock.Now()
	}
	r.firstRejections.Set(w, since, rejectionMemory)
	return since, rejected
}

// emitEvent emits the event.
func (r *RejectionReporter) emitEvent(ctx context.Context, about client.Object, problem *mirror.Refusal) {
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, problem.Reason, "Write", "%s", problem.Message)
	if about.GetObjectKind().GroupVersionKind() != claimKind {
		return
	}
	pods, err := index.PodsOfClaim(ctx, r.host, client.ObjectKeyFromObject(about))
	if err != nil {
		ctrllog.FromContext(ctx).V(1).Info("cannot find the claim's Pods", "cause", err.Error())
	}
	for i := range pods {
		if !podstatus.IsPodFinished(&pods[i]) {
			r.recorder.Eventf(&pods[i], nil, corev1.EventTypeWarning, problem.Reason, "Write", "claim %q: %s", about.GetName(), problem.Message)
		}
	}
}

var (
	claimKind    = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	snapshotKind = snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshot")
)

// userObjectOf returns the host's object for which Xylem writes an object in the host: a volume's claim, a
// content's snapshot, or a capacity's registration. For all other objects, it returns the object
// itself.
func userObjectOf(obj client.Object) client.Object {
	switch o := obj.(type) {
	case *corev1.PersistentVolume:
		if claim := o.Spec.ClaimRef; claim != nil {
			return newObjectReference(claimKind, claim.Namespace, claim.Name, claim.UID)
		}
	case *corev1.PersistentVolumeClaim:
		return newObjectReference(claimKind, o.Namespace, o.Name, o.UID)
	case *snapshotv1.VolumeSnapshotContent:
		snapshot := o.Spec.VolumeSnapshotRef
		return newObjectReference(snapshotKind, snapshot.Namespace, snapshot.Name, snapshot.UID)
	case *storagev1.CSIStorageCapacity:
		if len(o.OwnerReferences) > 0 {
			owner := o.OwnerReferences[0]
			return newObjectReference(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), metav1.NamespaceNone, owner.Name, owner.UID)
		}
	}
	return obj
}

// rootReferenceOf returns the root of a leaf object, or nil for copies of ConfigMaps and Secrets, whose
// problems the Pods that use them report.
func rootReferenceOf(leaf client.Object, origin mirror.Origin) client.Object {
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
	return newObjectReference(kind, origin.Root.Namespace, origin.Root.Name, origin.UID)
}

func newObjectReference(kind schema.GroupVersionKind, namespace, name string, uid types.UID) client.Object {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}}
	obj.SetGroupVersionKind(kind)
	return obj
}
