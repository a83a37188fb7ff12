package rootpvc

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// world is the state of two clusters: claims with two names, and volumes that anyone may have
// edited.
type world struct {
	roots  []*corev1.PersistentVolumeClaim
	hosts  []*corev1.PersistentVolume
	claims []*corev1.PersistentVolumeClaim
	leaves []*corev1.PersistentVolume
	pods   []*corev1.Pod
	// the host's class, whether the member has it, and the member's namespace
	class     *storagev1.StorageClass
	offered   bool
	namespace *corev1.Namespace
	node      *corev1.Node // in the host
	restores  fencing.RestoreTimes
	rules     placement.Rules
}

// uids lists two UIDs for each claim name: the UID of the claim that may exist, and that of an
// earlier claim, which is gone.
var uids = map[string][2]types.UID{"data": {"data-new", "data-old"}, "logs": {"logs-new", "logs-old"}}

type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// anyUID returns one of the UIDs of a claim name, usually that of the claim that may exist.
func (d dice) anyUID(name string) types.UID {
	return pick(d, uids[name][0], uids[name][0], uids[name][1])
}

func (d dice) world() world {
	var w world
	for name, uid := range uids {
		if d.IntN(4) > 0 {
			w.roots = append(w.roots, d.root(name, uid[0]))
		}
		if d.IntN(4) > 0 {
			w.claims = append(w.claims, d.leafClaim(name))
		}
	}
	w.surroundings(d)
	leaf := d.leaf(w.claims)
	for n := range d.IntN(3) {
		w.hosts = append(w.hosts, d.host(leaf, n == 1))
	}
	if d.IntN(4) > 0 {
		w.leaves = append(w.leaves, leaf)
	}
	if len(w.roots) > 0 && d.IntN(3) == 0 {
		if root := pick(d, w.roots...); !hostpv.IsPromiseName(root.Spec.VolumeName) {
			w.hosts = append(w.hosts, pick(d, d.scratch, d.imported)(leaf, root))
		}
	}
	return w
}

// scratch returns a promise with a disk that is released when no Pod uses it, and binds a root to it.
func (d dice) scratch(leaf *corev1.PersistentVolume, root *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: v1alpha1.ProvisionerName, Parameters: map[string]string{
		v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused,
	}}
	promise := hostpv.FulfillPromise(hostpv.PromiseWithMember(hostpv.NewPromiseFor(root, class), here, podOf(root.Name, here.NodeName, "")), leaf, d.policy(), here)
	promise.UID, promise.Status.Phase = "scratch", pick(d, corev1.VolumeBound, corev1.VolumeBound, corev1.VolumeReleased)
	if d.IntN(3) == 0 {
		promise.Spec.Capacity = size("2Gi").Requests
	}
	if d.IntN(2) == 0 {
		promise.Annotations[v1alpha1.AnnotationUnusedSince] = now.UTC().Format(time.RFC3339)
		promise.Annotations[v1alpha1.AnnotationReleasing] = pick(d, "", string(leaf.UID))
	}
	root.Spec.VolumeName = promise.Name
	return promise
}

// imported returns an admin's host PV that requests a leaf PV and that Xylem has not recorded, or has just
// recorded. A root may be bound to it.
func (d dice) imported(leaf *corev1.PersistentVolume, root *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pv := hostpv.TranslateVolume(leaf, root, d.policy(), here)
	pv.Name, pv.UID, pv.Finalizers = "imported", "imported", nil
	delete(pv.Labels, v1alpha1.LabelCluster)
	delete(pv.Labels, v1alpha1.LabelClusterID)
	pv.Annotations, pv.Spec.CSI.VolumeAttributes = nil, nil
	pv.Status.Phase = pick(d, corev1.VolumeAvailable, corev1.VolumeBound, corev1.VolumeReleased)
	if d.IntN(3) == 0 {
		pv.Spec.ClaimRef = nil
	} else if d.IntN(2) == 0 {
		root.Spec.VolumeName = pv.Name
	}
	if d.IntN(2) == 0 {
		return hostpv.RecordImport(pv, leaf, here)
	}
	return pv
}

// surroundings adds the class, the member, promises and Pods.
func (w *world) surroundings(d dice) {
	w.class = pick(d, nil, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: pick(d, v1alpha1.ProvisionerName, v1alpha1.ProvisionerName, "other"),
		VolumeBindingMode: pick(d, nil, ptr.To(storagev1.VolumeBindingWaitForFirstConsumer), ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)),
		Parameters:        map[string]string{v1alpha1.ParameterProvisioning: pick(d, v1alpha1.ProvisioningMirror, v1alpha1.ProvisioningMirror, v1alpha1.ProvisioningPromise)}})
	w.offered = d.IntN(4) > 0
	w.namespace = pick(d, nil, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelHost: pick(d, here.HostID, here.HostID, here.HostID, "another")}}})
	w.restores = pick(d, fencing.RestoreTimes{}, fencing.RestoreTimes{Host: now.Time}, fencing.RestoreTimes{Host: now.Time, HostUnconfirmed: true})
	if d.IntN(4) == 0 {
		w.rules = adopting("pv-1")
	}
	for _, root := range w.roots {
		if w.class != nil && d.IntN(4) == 0 {
			w.promise(d, root)
		}
		if d.IntN(2) == 0 {
			w.pods = append(w.pods, podOf(root.Name, pick(d, "", here.NodeName, elsewhereNode), pick(d, "", here.NodeName)))
		}
	}
}

// promise binds a root to a promise without a disk.
func (w *world) promise(d dice, root *corev1.PersistentVolumeClaim) {
	promise := hostpv.NewPromiseFor(root, w.class)
	promise.UID, promise.Status.Phase = "promise-"+root.UID, corev1.VolumeBound
	switch member := (mirror.Member{Registration: "cluster39", ClusterID: elsewhereID}); d.IntN(5) {
	case 0:
		promise = hostpv.PromiseWithMember(promise, here, nil)
	case 1:
		promise = hostpv.PromiseWithMember(promise, member, nil)
	case 2:
		promise = hostpv.ReleasePromise(hostpv.PromiseWithMember(promise, here, nil), root, here.ClusterID)
	}
	root.Spec.VolumeName = promise.Name
	if d.IntN(4) > 0 {
		w.hosts = append(w.hosts, promise)
	}
}

func podOf(claim, node, nominated string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod-" + claim, UID: types.UID("pod-" + claim)}}
	pod.Spec.NodeName, pod.Status.NominatedNodeName = node, nominated
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return pod
}

func (d dice) root(name string, uid types.UID) *corev1.PersistentVolumeClaim {
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid, Annotations: map[string]string{}}}
	root.Spec.StorageClassName = ptr.To("disk")
	root.Spec.AccessModes, root.Spec.Resources = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, size("1Gi")
	if node := pick(d, "", here.NodeName, here.NodeName, elsewhereNode); node != "" {
		root.Annotations[route.AnnSelectedNode] = node
	}
	if d.IntN(4) == 0 {
		root.Annotations[v1alpha1.AnnotationSteeredTo] = here.NodeName
	}
	root.Spec.VolumeName = pick(d, "", "", "pv-1", "pv-1", hostpv.HostVolumeName("pv-1", here.ClusterID, true), "another")
	if placed := pick(d, "", here.ClusterID, here.ClusterID, "id39"); placed != "" {
		root.Annotations[v1alpha1.AnnotationPlacedIn] = placed
	}
	if d.IntN(8) == 0 {
		root.DeletionTimestamp = &now
	}
	return root
}

func (d dice) leafClaim(name string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("leaf-" + name)}}
	mirror.Origin{HostID: here.HostID, Root: client.ObjectKeyFromObject(claim), UID: d.anyUID(name)}.StampLeaf(claim)
	claim.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(d.IntN(3)-1) * time.Minute))
	claim.Spec.VolumeName = pick(d, "", "pv-1", "pv-1", "pv-1", "pv-2")
	claim.Status.Phase = pick(d, corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimBound, corev1.ClaimLost)
	if d.IntN(8) == 0 {
		claim.DeletionTimestamp = &now
	}
	return claim
}

func (d dice) policy() corev1.PersistentVolumeReclaimPolicy {
	return pick(d, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)
}

func (d dice) leaf(claims []*corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-1"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: d.policy(),
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}},
	}}
	if name := pick(d, "", "data", "data", "logs"); name != "" {
		mirror.Origin{HostID: here.HostID, Root: types.NamespacedName{Namespace: "shop", Name: name}, UID: d.anyUID(name)}.StampLeaf(leaf)
		metav1.SetMetaDataAnnotation(&leaf.ObjectMeta, v1alpha1.AnnotationReclaimPolicy, string(d.policy()))
	}
	if len(claims) > 0 && d.IntN(4) > 0 {
		leaf.Spec.ClaimRef = refTo(pick(d, claims...))
	} else if d.IntN(2) == 0 {
		leaf.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "foreign", UID: "foreign"}
	}
	leaf.Spec.StorageClassName, leaf.Spec.Capacity = "disk", size("1Gi").Requests
	leaf.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if d.IntN(2) == 0 {
		metav1.SetMetaDataAnnotation(&leaf.ObjectMeta, v1alpha1.AnnotationNamespaceUID, "shop-uid")
	}
	leaf.Status.Phase = pick(d, corev1.VolumeAvailable, corev1.VolumeBound, corev1.VolumeBound, corev1.VolumeReleased)
	if d.IntN(8) == 0 {
		leaf.DeletionTimestamp = &now
	}
	return leaf
}

func refTo(claim client.Object) *corev1.ObjectReference {
	return &corev1.ObjectReference{Namespace: claim.GetNamespace(), Name: claim.GetName(), UID: claim.GetUID()}
}

func (d dice) host(leaf *corev1.PersistentVolume, suffixed bool) *corev1.PersistentVolume {
	name := pick(d, "data", "data", "logs")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: d.anyUID(name)}}
	if suffixed || d.IntN(4) == 0 {
		leaf = leaf.DeepCopy()
		leaf.UID = pick(d, types.UID("leaf-1"), "leaf-2")
	}
	pv := hostpv.TranslateVolume(leaf, claim, d.policy(), here)
	pv.Name, pv.UID = hostpv.HostVolumeName("pv-1", here.ClusterID, suffixed), types.UID(fmt.Sprintf("host-%t", suffixed))
	pv.Status.Phase = pick(d, corev1.VolumeAvailable, corev1.VolumeBound, corev1.VolumeBound, corev1.VolumeReleased, corev1.VolumeFailed)
	switch d.IntN(8) {
	case 0:
		pv.Spec.ClaimRef = nil
	case 1:
		pv.Spec.ClaimRef.UID = ""
	case 2:
		pv.DeletionTimestamp = &now
	case 3:
		pv.Finalizers = nil
	case 4:
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, v1alpha1.AnnotationAbandon, "true")
	}
	return pv
}

func (w world) observer() observe.Observer { return w.reconciler().newClaimObserver() }

func (w world) reconciler() *reconciler {
	host, leaf := newStore(hostIndexes), newStore(memberIndexes)
	host.add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop-uid"}})
	addAll(host, w.roots)
	addAll(host, w.hosts)
	addAll(leaf, w.claims)
	addAll(leaf, w.leaves)
	addAll(host, w.pods)
	if w.class != nil {
		host.add(w.class)
	}
	if w.offered {
		leaf.add(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}})
	}
	if w.namespace != nil {
		leaf.add(w.namespace)
	}
	if w.node != nil {
		host.add(w.node)
	}
	return newReconciler(&member.Link{
		Member: here, Host: host, Cache: leaf, RestoreTimes: func() fencing.RestoreTimes { return w.restores }, Rules: w.rules, Clock: clock.RealClock{},
	}, Options{Options: observe.Options{Orphans: account.NewOrphanTracker(), SchedulerNominates: true}})
}

func addAll[T client.Object](s *store, objects []T) {
	for _, obj := range objects {
		s.add(obj)
	}
}

// seenBy returns the controllers' observations of a world, by request.
func (w world) seenBy(t *testing.T) map[string]*volume.Observed {
	t.Helper()
	ctx, o := t.Context(), w.observer()
	seen := map[string]*volume.Observed{}
	note := func(request string, s *volume.Observed, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if s != nil {
			seen[request] = s
		}
	}
	for name := range uids {
		key := types.NamespacedName{Namespace: "shop", Name: name}
		claim, err := o.ObserveClaim(ctx, key)
		note("claim "+name, subjectOf(claim).Observed, err)
	}
	for _, host := range w.hosts {
		s, err := o.ObserveHostVolume(ctx, host.Name)
		note("host "+host.Name, s, err)
	}
	s, err := o.ObserveLeafVolume(ctx, "pv-1")
	note("leaf pv-1", s, err)
	return seen
}

// A request is for a claim, a host PV or a leaf PV. Whichever of them leads to a volume, the plan is the same. Two
// host PVs that represent one volume have two plans, and so has the left-over leaf claim of an earlier root.
func TestPlansDoNotDependOnTheRequest(t *testing.T) {
	d, observed, failures := dice{rand.New(rand.NewPCG(5, 6))}, 0, 0
	for n := range 20_000 {
		plans := map[string]map[string]lifecycle.Plan{}
		seen := d.world().seenBy(t)
		for request, s := range seen {
			if s.Name == "" || s.UID == "" {
				continue
			}
			subject := s.Name + " " + string(s.UID)
			if s.Host != nil {
				subject += " of " + s.Host.Name
			}
			if s.LeftoverClaim != nil {
				subject += ", left over " + s.LeftoverClaim.Name
			}
			if s.Host == nil && s.RootBoundToImport() {
				subject += " for " + s.ImportingHostVolume().Name
			}
			if plans[subject] == nil {
				plans[subject] = map[string]lifecycle.Plan{}
			}
			plans[subject][request] = lifecycle.NextPlan(s)
		}
		for subject, by := range plans {
			if len(by) < 2 {
				continue
			}
			observed++
			var first *lifecycle.Plan
			var of string
			for request, p := range by {
				if first == nil {
					first, of = &p, request
				} else if !reflect.DeepEqual(*first, p) {
					if failures++; failures <= 10 {
						t.Errorf("world %d: %s: %s plans %+v, but %s plans %+v\n%s\n%s", n, subject, of, *first, request, p, describe(seen[of]), describe(seen[request]))
					}
				}
			}
		}
	}
	t.Logf("%d volumes were observed by several requests; %d plans differ", observed, failures)
}

// The controllers leaf_pv and root_pv do not watch all the objects that an observation contains. Their own steps do not
// depend on these objects.
func TestStepsDoNotDependOnUnwatchedObjects(t *testing.T) {
	d, compared := dice{rand.New(rand.NewPCG(7, 8))}, 0
	for n := range 5_000 {
		w := d.world()
		was := w.seenBy(t)
		class := w.class
		w.offered, w.namespace = !w.offered, pick(d, nil, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		w.node = pick(d, nil, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: here.NodeName}})
		w.class = pick(d, nil, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: v1alpha1.ProvisionerName, Parameters: map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise}})
		unwatched := map[lifecycle.Owner]map[string]*volume.Observed{lifecycle.RootPV: w.seenBy(t)}
		w.class, w.pods = class, nil
		for _, root := range w.roots {
			if d.IntN(2) == 0 {
				w.pods = append(w.pods, podOf(root.Name, here.NodeName, ""))
			}
		}
		unwatched[lifecycle.LeafPV] = w.seenBy(t)
		for owner, seen := range unwatched {
			for request, s := range seen {
				if s.Name == "" {
					continue
				}
				compared++
				if before, after := lifecycle.NextPlan(was[request]), lifecycle.NextPlan(s); before.StepOwnedBy(owner) != after.StepOwnedBy(owner) {
					t.Fatalf("world %d: %s: %s takes step %q and then %q, although it watches nothing that has changed\n%s", n, request, owner, before.StepOwnedBy(owner), after.StepOwnedBy(owner), describe(s))
				}
			}
		}
	}
	t.Logf("compared %d plans", compared)
}

// asksOwner returns the request that makes the owner of a step plan that step.
func asksOwner(s *volume.Observed, p lifecycle.Plan) string {
	switch p.Owner {
	case lifecycle.LeafPV:
		return "leaf " + s.Name
	case lifecycle.RootPVC:
		if claim := s.StaleLeafClaim(); claim != nil && (s.Root == nil || s.LeftoverClaim != nil) {
			return "claim " + claim.Name // the request of the leaf claim's root
		}
		if s.ClaimWithoutVolume() {
			return "claim " + s.Root.Name
		}
		return "claim " + s.Origin.Root.Name
	default:
		return "host " + s.Host.Name
	}
}

// In any state of a volume, if one controller waits for another to act, the other controller's
// observation yields a step or a report.
func TestEveryWaitHasAReason(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(1, 2))}
	steps, failures := map[lifecycle.Step]int{}, 0
	for n := range 50_000 {
		w := d.world()
		seen := w.seenBy(t)
		for request, s := range seen {
			p := lifecycle.NextPlan(s)
			if p.Step == lifecycle.None {
				continue
			}
			steps[p.Step]++
			owner := asksOwner(s, p)
			got, there := lifecycle.Plan{}, seen[owner] != nil
			if there {
				got = lifecycle.NextPlan(seen[owner])
			}
			if got.Step != lifecycle.None || got.Report != nil || p.Step == lifecycle.CreateClaim && w.namespace == nil || there && s.Root != nil && (seen[owner].Root == nil || seen[owner].LeftoverClaim != nil) {
				continue // the leaf claim of an earlier root with that name is deleted first
			}
			if failures++; failures <= 10 {
				t.Errorf("world %d: %s plans %s %s by %s, but %s (exists: %t) yields %s %s by %s, want a step or a report\n%s", n, request, p.Phase, p.Step, p.Owner, owner, there, got.Phase, got.Step, got.Owner, describe(s))
			}
		}
	}
	t.Logf("steps: %v; %d failures", steps, failures)
}

// kept changes, in all objects of a world, the fields that only Kubernetes uses.
func (w world) kept() world {
	of := func(o client.Object) {
		o.SetResourceVersion("2")
		o.SetFinalizers(append(o.GetFinalizers(), "kubernetes.io/pv-protection"))
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
		o.SetAnnotations(annotations)
	}
	after := w
	after.roots, after.hosts, after.claims, after.leaves = nil, nil, nil, nil
	for _, root := range w.roots {
		root = root.DeepCopy()
		of(root)
		root.Status.Phase, root.Status.AccessModes = corev1.ClaimBound, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		after.roots = append(after.roots, root)
	}
	for _, claim := range w.claims {
		claim = claim.DeepCopy()
		of(claim)
		claim.Status.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		after.claims = append(after.claims, claim)
	}
	for _, pvs := range []struct {
		from []*corev1.PersistentVolume
		to   *[]*corev1.PersistentVolume
	}{{w.hosts, &after.hosts}, {w.leaves, &after.leaves}} {
		for _, pv := range pvs.from {
			pv = pv.DeepCopy()
			of(pv)
			pv.Status.LastPhaseTransitionTime = &now
			*pvs.to = append(*pvs.to, pv)
		}
	}
	return after
}

// Changes that route.VolumeChanged and similar functions ignore do not change any plan.
func TestIgnoredChangesChangeNoPlan(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(3, 4))}
	for n := range 5_000 {
		w := d.world()
		after := w.kept()
		for i := range w.hosts {
			if route.VolumeChanged(w.hosts[i], after.hosts[i]) {
				t.Fatalf("world %d: a host PV counts as changed", n)
			}
		}
		for i := range w.leaves {
			if route.VolumeChanged(w.leaves[i], after.leaves[i]) {
				t.Fatalf("world %d: a leaf PV counts as changed", n)
			}
		}
		for i := range w.claims {
			if leafClaimChanged(w.claims[i], after.claims[i]) {
				t.Fatalf("world %d: a leaf claim counts as changed", n)
			}
		}
		for i := range w.roots {
			if rootClaimChanged(w.roots[i], after.roots[i]) {
				t.Fatalf("world %d: a root claim counts as changed", n)
			}
		}
		was, is := w.seenBy(t), after.seenBy(t)
		for request := range was {
			if a, b := lifecycle.NextPlan(was[request]), lifecycle.NextPlan(is[request]); !reflect.DeepEqual(a, b) {
				t.Fatalf("world %d: %s: %+v before, %+v after", n, request, a, b)
			}
		}
	}
}

func describe(s *volume.Observed) string {
	text := ""
	for name, claim := range map[string]*corev1.PersistentVolumeClaim{"root": s.Root, "successor": s.Successor, "leaf claim": s.LeafClaim, "holder": s.Holder, "left": s.LeftoverClaim} {
		if claim != nil {
			text += fmt.Sprintf("%s %s %s names %q %s annotations %v deleting %t\n", name, claim.Name, claim.UID, claim.Spec.VolumeName, claim.Status.Phase, claim.Annotations, claim.DeletionTimestamp != nil)
		}
	}
	for name, pv := range map[string]*corev1.PersistentVolume{"host": s.Host, "leaf": s.Leaf, "recreated": s.Recreated} {
		if pv != nil {
			text += fmt.Sprintf("%s %s %s %s %s claimRef %v finalizers %v annotations %v deleting %t\n", name, pv.Name, pv.UID, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy, pv.Spec.ClaimRef, pv.Finalizers, pv.Annotations, pv.DeletionTimestamp != nil)
		}
	}
	for i := range s.EarlierHosts {
		text += fmt.Sprintf("earlier %s %s for %v\n", s.EarlierHosts[i].Name, s.EarlierHosts[i].Status.Phase, s.EarlierHosts[i].Spec.ClaimRef)
	}
	return text
}
