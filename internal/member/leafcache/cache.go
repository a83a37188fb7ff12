package leafcache

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	toolscache "k8s.io/client-go/tools/cache"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/reduced"
	"github.com/xylem-io/xylem/internal/timeline"
)

// kindReductions are the reductions of the kinds in NewLeafCache's cache, except events.
var kindReductions = map[reflect.Type]kindReduction{
	reflect.TypeFor[*corev1.ConfigMap]():             {reduce: reduceConfig},
	reflect.TypeFor[*corev1.Secret]():                {reduce: reduceConfig},
	reflect.TypeFor[*corev1.PersistentVolumeClaim](): {reduce: reduceClaim},
	reflect.TypeFor[*corev1.PersistentVolume]():      {reduce: reduceVolume},
	reflect.TypeFor[*corev1.Node]():                  {reduce: reduceNode},
	reflect.TypeFor[*storagev1.CSIStorageCapacity](): {reduce: reduceCapacity},
}

// NewLeafCache creates the cache that a member's controllers read. Reading a kind that it does not cache is
// an error, and does not start a watch.
func NewLeafCache(ctx context.Context, c *member.Connection, held *CacheBudget, scheme *runtime.Scheme, hostID string) (cache.Cache, error) {
	ours := labels.SelectorFromSet(labels.Set{v1alpha1.LabelHost: hostID})
	about := &eventSubjects{hostID: hostID}
	all := maps.Clone(kindReductions)
	all[reflect.TypeFor[*corev1.Event]()] = kindReduction{reduce: about.reduceEvent, waitReady: about.waitForInformers}
	built, err := cache.New(c.Config, cache.Options{
		HTTPClient:  c.Watches,
		Scheme:      scheme,
		Mapper:      member.NewRESTMapper(),
		NewInformer: held.newInformerFunc(all),

		DefaultWatchErrorHandler: logWatchError,

		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   {Label: ours},
			&corev1.PersistentVolumeClaim{}: {Label: ours},
			&corev1.ConfigMap{}:             {Label: ours},
			&corev1.Secret{}:                {Label: ours},
			&corev1.PersistentVolume{}:      {},
			&corev1.Node{}:                  {},
			&corev1.Namespace{}:             {},
			&storagev1.StorageClass{}:       {},
			&storagev1.CSIStorageCapacity{}: {},
			&corev1.Event{}:                 {Field: fields.OneTermEqualSelector("type", corev1.EventTypeWarning)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("create the member's cache: %w", err)
	}
	if err := about.setupInformers(ctx, built); err != nil {
		return nil, err
	}
	built = index.NewCache(built)
	if err := index.SetupMemberIndexes(ctx, built); err != nil {
		return nil, err
	}
	return built, createInformers(ctx, built, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &corev1.ConfigMap{}, &corev1.Secret{},
		&corev1.PersistentVolume{}, &corev1.Node{}, &corev1.Namespace{}, &storagev1.StorageClass{}, &storagev1.CSIStorageCapacity{}, &corev1.Event{})
}

// createInformers creates a cache's informers before the cache starts.
func createInformers(ctx context.Context, c cache.Cache, kinds ...client.Object) error {
	for _, kind := range kinds {
		if _, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("create an informer for %T: %w", kind, err)
		}
	}
	return nil
}

// NewSnapshotCache creates the cache of a member's snapshots. If the member rejects a watch, for
// example because it no longer serves snapshots, the cache calls failed().
func NewSnapshotCache(ctx context.Context, c *member.Connection, held *CacheBudget, scheme *runtime.Scheme, hostID string, failed func(error)) (cache.Cache, error) {
	built, err := newKindCache(c, held, scheme, failed, nil, map[reflect.Type]kindReduction{
		reflect.TypeFor[*snapshotv1.VolumeSnapshot](): {reduce: reduceSnapshot(hostID)},
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of the member's snapshots: %w", err)
	}
	if err := index.SetupSnapshotIndexes(ctx, built); err != nil {
		return nil, err
	}
	return built, createInformers(ctx, built, &snapshotv1.VolumeSnapshot{}, &snapshotv1.VolumeSnapshotContent{}, &snapshotv1.VolumeSnapshotClass{})
}

// NewAttachmentCache creates the cache of a member's VolumeAttachments. If the member rejects a watch,
// for example because Xylem has lost the permission, the cache calls failed().
func NewAttachmentCache(ctx context.Context, c *member.Connection, held *CacheBudget, scheme *runtime.Scheme, failed func(error)) (cache.Cache, error) {
	built, err := newKindCache(c, held, scheme, failed, nil, map[reflect.Type]kindReduction{
		reflect.TypeFor[*storagev1.VolumeAttachment](): {reduce: reduceAttachment},
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of the member's attachments: %w", err)
	}
	if err := index.SetupAttachmentIndex(ctx, built); err != nil {
		return nil, err
	}
	return built, createInformers(ctx, built, &storagev1.VolumeAttachment{})
}

// NewBudgetCache creates the cache of a member's PodDisruptionBudgets. Like NewAttachmentCache, it calls failed() if
// the member rejects a watch. It includes the member's own, because two budgets for a Pod block its eviction.
func NewBudgetCache(ctx context.Context, c *member.Connection, held *CacheBudget, scheme *runtime.Scheme, failed func(error)) (cache.Cache, error) {
	built, err := newKindCache(c, held, scheme, failed, nil, map[reflect.Type]kindReduction{
		reflect.TypeFor[*policyv1.PodDisruptionBudget](): {reduce: reduceBudget},
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of the member's PodDisruptionBudgets: %w", err)
	}
	return built, createInformers(ctx, built, &policyv1.PodDisruptionBudget{})
}

// reduceBudget drops the status, which the member computes for itself.
func reduceBudget(obj any) (any, error) {
	budget, ok := obj.(*policyv1.PodDisruptionBudget)
	if !ok {
		return obj, nil
	}
	budget.ManagedFields, budget.Status = nil, policyv1.PodDisruptionBudgetStatus{}
	return budget, nil
}

// NewServiceCache creates the cache of the Services and EndpointSlices that this host created in a member. Like
// NewAttachmentCache, it calls failed() if the member rejects a watch. The member's own EndpointSlices of these
// Services have their labels, too, so the selector names Xylem as their manager.
func NewServiceCache(ctx context.Context, c *member.Connection, held *CacheBudget, scheme *runtime.Scheme, hostID string, failed func(error)) (cache.Cache, error) {
	built, err := newKindCache(c, held, scheme, failed, map[client.Object]cache.ByObject{
		&corev1.Service{}:            {Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelHost: hostID})},
		&discoveryv1.EndpointSlice{}: {Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelHost: hostID, discoveryv1.LabelManagedBy: v1alpha1.EndpointSliceManager})},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("create the cache of the member's Services: %w", err)
	}
	if err := index.SetupSliceIndex(ctx, built); err != nil {
		return nil, err
	}
	return built, createInformers(ctx, built, &corev1.Service{}, &discoveryv1.EndpointSlice{})
}

// newKindCache creates a cache of kinds that a member may stop serving.
func newKindCache(c *member.Connection, held *CacheBudget, scheme *runtime.Scheme, failed func(error), selected map[client.Object]cache.ByObject, reductions map[reflect.Type]kindReduction) (cache.Cache, error) {
	return cache.New(c.Config, cache.Options{ //nolint:wrapcheck // the callers wrap it
		HTTPClient:                  c.Watches,
		Scheme:                      scheme,
		Mapper:                      member.NewRESTMapper(),
		ByObject:                    selected,
		ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
				failed(err)
			}
			logWatchError(ctx, r, err)
		},
		NewInformer: held.newInformerFunc(reductions),
	})
}

// reduceSnapshot keeps only the name of a VolumeSnapshot that this host did not create.
func reduceSnapshot(hostID string) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		vs, ok := obj.(*snapshotv1.VolumeSnapshot)
		if !ok || vs.Labels[v1alpha1.LabelHost] == hostID {
			return dropManagedFields(obj)
		}
		return &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: vs.Namespace, Name: vs.Name, UID: vs.UID, ResourceVersion: vs.ResourceVersion}}, nil
	}
}

// NewWorkloadCache creates the cache of Pods that this host did not create. They reduce the
// capacity of the virtual node. Its informer of Pods contains only those that are bound to a node and not
// finished, as member.Workload.
func NewWorkloadCache(ctx context.Context, c *member.Connection, held *CacheBudget, scheme *runtime.Scheme, hostID string) (cache.Cache, error) {
	others, err := labels.NewRequirement(v1alpha1.LabelHost, selection.NotEquals, []string{hostID})
	if err != nil {
		return nil, fmt.Errorf("select other workloads: %w", err)
	}
	built, err := cache.New(c.Config, cache.Options{
		HTTPClient:                  c.Watches,
		Scheme:                      scheme,
		Mapper:                      member.NewRESTMapper(),
		ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler:    logWatchError,
		NewInformer: held.newInformerFunc(map[reflect.Type]kindReduction{
			reflect.TypeFor[*corev1.Pod](): {reduce: reduceWorkload, newEmpty: func() client.Object { return &member.Workload{} }},
		}),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Label: labels.NewSelector().Add(*others)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of the member's other Pods: %w", err)
	}
	return built, createInformers(ctx, built, &corev1.Pod{})
}

// logWatchError logs that a watch failed, unless the link is ending.
func logWatchError(ctx context.Context, r *toolscache.Reflector, err error) {
	if ctx.Err() == nil {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

func dropManagedFields(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// reduceConfig replaces the contents of a copied ConfigMap or Secret by a digest.
func reduceConfig(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		return refs.ReduceConfigMap(o), nil
	case *corev1.Secret:
		return refs.ReduceSecret(o), nil
	}
	return obj, nil
}

// reduceClaim makes claims share equal values. Of the managed fields of an unbound claim, it keeps
// the later of two times: the scheduler selected a node, and the PV controller requested the volume
// from the provisioner. It also keeps whether somebody else created a stamped claim.
func reduceClaim(obj any) (any, error) {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return obj, nil
	}
	var requested time.Time
	_, asked := claim.Annotations[volumehelpers.AnnStorageProvisioner]
	_, selected := claim.Annotations[volumehelpers.AnnSelectedNode]
	if (asked || selected) && claim.Spec.VolumeName == "" {
		requested = timeline.AnnotationWrittenAt(claim, volumehelpers.AnnStorageProvisioner)
		if selected := timeline.AnnotationWrittenAt(claim, volumehelpers.AnnSelectedNode); selected.After(requested) {
			requested = selected
		}
	}
	mirror.MarkLeafCreatedByOthers(claim)
	reduced.InternClaim(claim)
	if !requested.IsZero() {
		if claim.ManagedFields == nil {
			claim.ManagedFields = make([]metav1.ManagedFieldsEntry, 1)
		}
		claim.ManagedFields[0].Time = new(metav1.NewTime(requested))
	}
	return claim, nil
}

// untranslatable replaces a node affinity that restricts a volume, but that no virtual node can show.
var untranslatable = &corev1.VolumeNodeAffinity{}

// reduceVolume drops the fields of a PV that no decision reads. A member may have many PVs that
// Xylem did not create. It keeps the node affinity if virtual nodes may have labels for it.
func reduceVolume(obj any) (any, error) {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok {
		return obj, nil
	}
	pv.ManagedFields = nil
	switch {
	case mirror.StampedRootUID(pv) == "":
		pv.Spec.NodeAffinity = nil
	case pv.Spec.NodeAffinity != nil && len(hostpv.TopologiesOf(pv.Spec.NodeAffinity)) == 0:
		pv.Spec.NodeAffinity = untranslatable
	}
	pv.Spec.MountOptions = nil
	if pv.Spec.CSI != nil {
		pv.Spec.CSI.VolumeAttributes = nil
	}
	reduced.InternVolume(pv)
	return pv, nil
}

// reduceAttachment keeps the fields of a VolumeAttachment that identify the node and the volume,
// and the time of the last write of its status.
func reduceAttachment(obj any) (any, error) {
	a, ok := obj.(*storagev1.VolumeAttachment)
	if !ok {
		return obj, nil
	}
	reduced := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion, CreationTimestamp: a.CreationTimestamp, DeletionTimestamp: a.DeletionTimestamp,
		},
		Spec:   storagev1.VolumeAttachmentSpec{Attacher: a.Spec.Attacher, NodeName: a.Spec.NodeName},
		Status: storagev1.VolumeAttachmentStatus{Attached: a.Status.Attached, AttachError: errorWithoutTime(a.Status.AttachError), DetachError: errorWithoutTime(a.Status.DetachError)},
	}
	reduced.Spec.Source.PersistentVolumeName = a.Spec.Source.PersistentVolumeName
	for _, entry := range a.ManagedFields {
		if entry.Subresource == "status" && entry.Time != nil && (len(reduced.ManagedFields) == 0 || reduced.ManagedFields[0].Time.Before(entry.Time)) {
			reduced.ManagedFields = []metav1.ManagedFieldsEntry{{Subresource: entry.Subresource, Time: entry.Time}}
		}
	}
	return reduced, nil
}

// errorWithoutTime returns an attachment error without its time, which changes with each attempt.
func errorWithoutTime(e *storagev1.VolumeError) *storagev1.VolumeError {
	if e == nil {
		return nil
	}
	return &storagev1.VolumeError{Message: e.Message}
}

// reduceCapacity keeps the fields of a CSIStorageCapacity that capacity is computed from, and
// whether it has a topology. A driver may publish one object for each node and class.
func reduceCapacity(obj any) (any, error) {
	capacity, ok := obj.(*storagev1.CSIStorageCapacity)
	if !ok {
		return obj, nil
	}
	reduced := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: capacity.Namespace, Name: capacity.Name, UID: capacity.UID, ResourceVersion: capacity.ResourceVersion,
		},
		StorageClassName: capacity.StorageClassName, Capacity: capacity.Capacity, MaximumVolumeSize: capacity.MaximumVolumeSize,
	}
	if capacity.NodeTopology != nil {
		reduced.NodeTopology = &metav1.LabelSelector{}
	}
	return reduced, nil
}

// reduceNode keeps the fields of a Node that capacity is computed from.
func reduceNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	var kept []corev1.NodeCondition
	for _, condition := range node.Status.Conditions {
		isPressure := condition.Status == corev1.ConditionTrue && strings.HasSuffix(string(condition.Type), "Pressure")
		if condition.Type == corev1.NodeReady || isPressure {
			condition.LastHeartbeatTime = metav1.Time{}
			kept = append(kept, condition)
		}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels},
		Spec:       corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints},
		Status: corev1.NodeStatus{
			Capacity: mirror.ResourceAmounts(node.Status.Capacity), Allocatable: mirror.ResourceAmounts(node.Status.Allocatable), Conditions: kept,
			DeclaredFeatures: nodes.ResizeFeaturesOf(node),
			NodeInfo:         corev1.NodeSystemInfo{Architecture: validLabelValue(node.Status.NodeInfo.Architecture), OperatingSystem: validLabelValue(node.Status.NodeInfo.OperatingSystem)},
		},
	}, nil
}

// validLabelValue returns a value that a node reports, or "" if it is not a valid label value for the
// virtual node.
func validLabelValue(value string) string {
	if len(validation.IsValidLabelValue(value)) > 0 {
		return ""
	}
	return value
}

// reduceWorkload keeps the node and the requests of a Pod that uses a node.
func reduceWorkload(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		if workload := member.WorkloadOf(pod); workload != nil {
			return workload, nil
		}
	}
	return nil, nil //nolint:nilnil // the cache does not keep it
}
