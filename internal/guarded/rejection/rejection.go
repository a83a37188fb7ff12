// Package rejection reports to users which of Xylem's writes the host rejects.
package rejection

import (
	"context"
	"fmt"
	"strconv"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	// persists is how long the host must reject a write until Reporter reports it. A shorter
	// rejection, for example while an admin updates a policy, requires no action.
	persists = 3 * time.Second
	// memory is how long a rejection is recorded. It exceeds the longest delay between two attempts
	// of a controller, which is 1,000 s (client-go's DefaultTypedControllerRateLimiter).
	memory = 30 * time.Minute
)

// Reporter is a client of the host. If the host's API server rejects a write repeatedly, Reporter
// emits an event on the object that the write is for and, for a claim, on the claim's Pods. Most
// controllers retry such writes without a report of their own.
type Reporter struct {
	client.Client
	recorder events.EventRecorder
	clock    clock.Clock
	first    *cache.Expiring // name -> time.Time of the first rejection
}

// New returns a Reporter that writes with c and reads claims' Pods from c's cache.
func New(c client.Client, recorder events.EventRecorder, clk clock.Clock) *Reporter {
	return &Reporter{c, recorder, clk, cache.NewExpiringWithClock(clk)}
}

// name identifies an object. An object to create has no UID.
type name struct {
	kind string
	client.ObjectKey
}

// Create implements client.Writer.
func (r *Reporter) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	err := r.Client.Create(ctx, obj, opts...)
	r.observe(ctx, "create", "", obj, err)
	return err
}

// Patch implements client.Writer.
func (r *Reporter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	err := r.Client.Patch(ctx, obj, patch, opts...)
	r.observe(ctx, "change", "", obj, err)
	return err
}

// Delete implements client.Writer.
func (r *Reporter) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	err := r.Client.Delete(ctx, obj, opts...)
	r.observe(ctx, "delete", "", obj, err)
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
	s.r.observe(ctx, "change", "the status of ", obj, err)
	return err
}

// Apply implements client.SubResourceWriter.
func (s status) Apply(ctx context.Context, applied runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	err := s.SubResourceWriter.Apply(ctx, applied, opts...)
	if obj, ok := applied.(client.Object); ok {
		s.r.observe(ctx, "change", "the status of ", obj, err)
	}
	return err
}

// observe records a write's result, and reports a rejection that persists.
func (r *Reporter) observe(ctx context.Context, doing, part string, obj client.Object, err error) {
	kind := "object"
	if gvk, unknown := r.GroupVersionKindFor(obj); unknown == nil {
		kind = gvk.Kind
	}
	key := name{part + kind, client.ObjectKeyFromObject(obj)}
	if !report.Rejected(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		r.first.Delete(key)
		return
	}
	if since, rejected := r.since(key); !rejected || r.clock.Since(since) < persists {
		return
	}
	problem := report.RefusedByHost(doing, fmt.Sprintf("%s%s %s", part, kind, strconv.Quote(obj.GetName())), err)
	r.tell(ctx, obj, problem)
}

// since returns when the host first rejected a write, and reports whether it did so before. It
// extends the record's life.
func (r *Reporter) since(key name) (time.Time, bool) {
	value, _ := r.first.Get(key)
	since, rejected := value.(time.Time)
	if !rejected {
		since = r.clock.Now()
	}
	r.first.Set(key, since, memory)
	return since, rejected
}

// tell emits the event.
func (r *Reporter) tell(ctx context.Context, obj client.Object, problem *mirror.Refusal) {
	about := userOf(obj)
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, problem.Reason, "Write", "%s", problem.Message)
	if kind := about.GetObjectKind().GroupVersionKind().Kind; kind != "PersistentVolumeClaim" {
		return
	}
	pods, err := index.PodsOfClaim(ctx, r.Client, client.ObjectKeyFromObject(about))
	if err != nil {
		ctrllog.FromContext(ctx).V(1).Info("cannot find the claim's Pods", "cause", err.Error())
	}
	for i := range pods {
		if !podstatus.Finished(&pods[i]) {
			r.recorder.Eventf(&pods[i], nil, corev1.EventTypeWarning, problem.Reason, "Write", "claim %q: %s", about.GetName(), problem.Message)
		}
	}
}

// userOf returns the object for which Xylem writes another one: a volume's claim, or a content's
// snapshot. For all other objects, it returns the object itself.
func userOf(obj client.Object) client.Object {
	switch o := obj.(type) {
	case *corev1.PersistentVolume:
		if claim := o.Spec.ClaimRef; claim != nil {
			return reference("v1", "PersistentVolumeClaim", claim.Namespace, claim.Name, claim.UID)
		}
	case *corev1.PersistentVolumeClaim:
		return reference("v1", "PersistentVolumeClaim", o.Namespace, o.Name, o.UID)
	case *snapshotv1.VolumeSnapshotContent:
		snapshot := o.Spec.VolumeSnapshotRef
		return reference(snapshotv1.SchemeGroupVersion.String(), "VolumeSnapshot", snapshot.Namespace, snapshot.Name, snapshot.UID)
	}
	return obj
}

func reference(version, kind, namespace, name string, uid types.UID) client.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid},
	}
}
