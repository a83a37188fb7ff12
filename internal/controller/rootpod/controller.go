package rootpod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/sharing"
)

const (
	// Name is the name of the controller.
	Name  = "root_pod"
	actor = guarded.Actor("root-pod")
	// workers is the number of Pods of one member that are reconciled concurrently.
	workers = 8
	// referenceInterval is the interval at which Xylem reads the host's ConfigMaps and Secrets, and the
	// copies of shared volumes, that a Pod waits for, because it does not watch all of them.
	referenceInterval = 10 * time.Second
	// nominationGrace is how long a Pod without a nomination must be unchanged before Xylem makes the scheduler
	// choose again. It is longer than the scheduler's longest wait between two attempts, which is 10 s
	// (podMaxBackoffSeconds).
	nominationGrace = 20 * time.Second
	// maxNamedObjects is the number of absent objects, and of objects without a copy, after which Xylem stops
	// reading a Pod's references. Each read is a request to the host.
	maxNamedObjects = 10
)

// Options configures the controller.
type Options struct {
	// SchedulerNominates means that the host's scheduler sets status.nominatedNodeName before it
	// binds a Pod (Kubernetes 1.35 and later, by default). Without it, a Pod is pushed early
	// only if it fits the node according to Xylem's own checks, and no other Pod uses its
	// unbound claims.
	SchedulerNominates bool
	// Mirrors contains the host PVs that were created for claims.
	Mirrors *account.MirrorTracker
	// Sharer creates the copies of shared volumes.
	Sharer *sharing.Sharer
}

type reconciler struct {
	*member.Link
	Options
	// news is about rejected changes, scheduling gates and lost nominations, by the Pod's UID, alone or with
	// what the state is about.
	news *news.StateMemory
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;patch
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Setup adds the controller to a member's link.
func Setup(link *member.Link, options Options) error {
	r := &reconciler{Link: link, Options: options, news: news.New(link.Clock)}
	return link.AddController(Name, workers, r, EventSources(link)...)
}

// Reconcile takes the next step for one Pod.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observePod(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, r.reportUnreadableReference(ctx, o.Root, err)
	}
	d := lifecycle.NextDecision(o)
	if err := r.executeDecision(ctx, o, d); err != nil {
		return reconcile.Result{}, err
	}
	switch d.(type) {
	case lifecycle.AwaitReferences, lifecycle.MarkCopying, lifecycle.CopyVolume:
		return reconcile.Result{RequeueAfter: referenceInterval}, nil
	case lifecycle.ChooseAgain:
		return reconcile.Result{RequeueAfter: nominationGrace}, nil
	case lifecycle.RemoveLeaf:
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: r.emitLeafPodGated(o)}, nil
}

func (r *reconciler) observePod(ctx context.Context, key types.NamespacedName) (lifecycle.Observed, error) {
	o := lifecycle.Observed{Member: r.Member, Rules: r.Rules}
	var err error
	if o.Root, err = index.FindObject[corev1.Pod](ctx, r.Host, key); err != nil {
		return o, err
	}
	if o.Leaf, o.Origin, err = index.FindStamped[corev1.Pod](ctx, r.Cache, r.HostID, key); err != nil {
		return o, err
	}
	if o.Root == nil || !o.ConcernsMember() {
		return o, nil
	}
	if o.Node, err = index.FindObject[corev1.Node](ctx, r.Host, index.ClusterScopedKey(o.NodeName())); err != nil || o.Root.DeletionTimestamp != nil {
		return o, err
	}
	o.SchedulerNominates = r.SchedulerNominates
	if o.Node == nil && o.Root.Spec.NodeName == r.NodeName && !r.Leaving {
		return o, fmt.Errorf("node %s, which Pod %s is bound to, is not in the cache yet", r.NodeName, key)
	}
	o.Rejection = r.NamespaceRejections.RejectionOf(key.Namespace)
	if o.MemberNamespace, err = index.FindObject[corev1.Namespace](ctx, r.Cache, index.ClusterScopedKey(key.Namespace)); err != nil {
		return o, err
	}
	if err := r.observeClaims(ctx, &o); err != nil {
		return o, err
	}
	if name := o.NodeName(); o.Node == nil || o.Node.Name != name { // the claims may name a group's node
		if o.Node, err = index.FindObject[corev1.Node](ctx, r.Host, index.ClusterScopedKey(name)); err != nil {
			return o, err
		}
	}
	if o.Leaf == nil {
		return o, r.observeReferences(ctx, &o)
	}
	return r.observeOtherNodes(ctx, o, key)
}

// observeOtherNodes observes the nodes outside the member that the root and its claims name.
func (r *reconciler) observeOtherNodes(ctx context.Context, o lifecycle.Observed, key types.NamespacedName) (_ lifecycle.Observed, err error) {
	if o.OtherNodes, err = findOtherNodes(ctx, r.Host, o); err != nil {
		return o, err
	}
	if name := o.Root.Spec.NodeName; name != "" && name != r.NodeName && !placement.IsPodInMember(o.Root, o.Node, r.Member) && o.OtherNodes[name] == nil {
		return o, fmt.Errorf("node %s, which Pod %s is bound to, is not in the cache yet", name, key)
	}
	return o, nil
}

// observeClaims observes the Pod's claims. It skips those of a Pod that has too many of them to be pushed.
func (r *reconciler) observeClaims(ctx context.Context, o *lifecycle.Observed) error {
	if o.Leaf == nil && !podstatus.HadLeafPod(o.Root) && refs.HasTooManyReferences(o.Root) {
		return nil
	}
	for _, name := range podspec.ClaimNamesOfPod(o.Root) {
		claim, err := r.observeClaim(ctx, types.NamespacedName{Namespace: o.Root.Namespace, Name: name}, o.Root)
		if err != nil {
			return err
		}
		o.Claims = append(o.Claims, claim)
	}
	return nil
}

// observeClaimsBoundHere reads live which of the Pod's claims this member has bound: the leaf claim is bound,
// or the host has, or is about to have, a PV of this member for the claim. In the latter case, the leaf
// claim was bound, and was then deleted in the member or lost in a restore of the member.
func (r *reconciler) observeClaimsBoundHere(ctx context.Context, o *lifecycle.Observed) error {
	for i := range o.Claims {
		c := &o.Claims[i]
		if c.Root == nil {
			continue
		}
		if c.Volume != nil && r.PlacementMember().SharesVolume(c.Volume) { // the member's copy may have been bound, and then deleted
			c.BoundHere = slices.Contains(hostpv.MembersWithCopies(c.Volume), r.ClusterID)
			continue
		}
		unbound, err := r.NewProver().ProveLeafUnbound(ctx, c.Root)
		if err != nil {
			return err
		}
		if c.BoundHere = !unbound; c.BoundHere {
			continue
		}
		if c.BoundHere, err = r.isMirroredLive(ctx, c.Root); err != nil {
			return fmt.Errorf("read the volume of claim %s: %w", client.ObjectKeyFromObject(c.Root), err)
		}
	}
	return nil
}

// isMirroredLive reads live whether a host PV represents a volume of this member for a claim.
func (r *reconciler) isMirroredLive(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	name := claim.Spec.VolumeName
	if name == "" {
		var err error
		if name, err = r.Mirrors.HostVolumeFor(ctx, claim); err != nil {
			return false, err
		}
	}
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, r.HostLive, index.ClusterScopedKey(name))
	if pv == nil {
		return false, err
	}
	cluster, _, _, ours := hostpv.LeafOfHostVolume(pv)
	return ours && cluster == r.ClusterID && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID, nil
}

// findOtherNodes returns the existing nodes, other than the member's own, that the root and its
// unbound claims name.
func findOtherNodes(ctx context.Context, from client.Reader, o lifecycle.Observed) (map[string]*corev1.Node, error) {
	names := []string{o.Root.Spec.NodeName}
	for _, c := range o.Claims {
		if c.Root != nil && c.Root.Spec.VolumeName == "" {
			names = append(names, c.Root.Annotations[route.AnnSelectedNode])
		}
	}
	others := map[string]*corev1.Node{}
	for _, name := range names {
		if name == "" || name == o.Member.NodeName || others[name] != nil {
			continue
		}
		node, err := index.FindObject[corev1.Node](ctx, from, index.ClusterScopedKey(name))
		if err != nil {
			return nil, err
		}
		if node != nil {
			others[name] = node
		}
	}
	return others, nil
}

// observeClaim observes one of the Pod's claims in the host and in the member.
func (r *reconciler) observeClaim(ctx context.Context, key types.NamespacedName, pod *corev1.Pod) (lifecycle.Claim, error) {
	c := lifecycle.Claim{Name: key.Name}
	var err error
	if c.Root, err = index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Host, key); err != nil || c.Root == nil {
		return c, err
	}
	c.NotOwnedByPod = podspec.IsEphemeralClaim(pod, key.Name) && !metav1.IsControlledBy(c.Root, pod)
	if c.Volume, err = readBoundVolume(ctx, r.Host, c.Root); err != nil {
		return c, err
	}
	if c.Volume != nil && r.PlacementMember().SharesVolume(c.Volume) {
		c.NeedsVolumeCopy = true
		return c, r.observeVolumeCopy(ctx, key, &c)
	}
	if c.GroupsUnknown, err = r.groupsUnknown(ctx, c.Volume); err != nil {
		return c, err
	}
	leaf, origin, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key)
	if err != nil {
		return c, err
	}
	if leaf != nil && origin.UID == c.Root.UID {
		c.Leaf = leaf
		if c.LeafClassWaits, err = r.leafClassWaits(ctx, leaf); err != nil {
			return c, err
		}
	}
	if c.Root.Spec.VolumeName != "" {
		return c, nil
	}
	if c.ProvisionedByXylem, err = r.provisionedByXylem(ctx, c.Root); err != nil {
		return c, err
	}
	if !r.SchedulerNominates {
		c.UsedByOlderPod, err = r.anyOtherPodOfClaim(ctx, key, pod, func(user *corev1.Pod) bool { return podPrecedes(user, pod) })
	} else if podstatus.NominationLost(pod) {
		c.WantedByOtherPod, err = r.anyOtherPodOfClaim(ctx, key, pod, func(user *corev1.Pod) bool { return r.HasNode(user.Status.NominatedNodeName) })
	}
	return c, err
}

// groupsUnknown reports whether the leaf PV of a host PV has a node affinity that the host PV does not show.
func (r *reconciler) groupsUnknown(ctx context.Context, host *corev1.PersistentVolume) (bool, error) {
	if host == nil || len(r.NodeGroups) == 0 {
		return false, nil
	}
	cluster, name, uid, ours := hostpv.LeafOfHostVolume(host)
	if !ours || cluster != r.ClusterID || mirror.IsNodeAffinityToTopologies(host.Spec.NodeAffinity, cluster) {
		return false, nil
	}
	leaf, err := index.FindObject[corev1.PersistentVolume](ctx, r.Cache, index.ClusterScopedKey(name))
	return leaf == nil || leaf.UID != uid || leaf.Spec.NodeAffinity != nil, err
}

// observeVolumeCopy observes the copy of the claim's shared volume, which another member has. The copy
// counts as the leaf claim once it is bound.
func (r *reconciler) observeVolumeCopy(ctx context.Context, key types.NamespacedName, c *lifecycle.Claim) error {
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Cache, key)
	if claim == nil {
		return err
	}
	of, ours := mirror.VolumeCopyFromHost(r.HostID, claim)
	if ours && of.VolumeUID == c.Volume.UID && of.ClaimUID == c.Root.UID && claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimBound &&
		slices.Contains(hostpv.MembersWithCopies(c.Volume), r.ClusterID) {
		c.Leaf = claim
	}
	return nil
}

// readBoundVolume returns the host PV that a claim is bound to, if its claimRef has the claim's UID. It
// returns nil if claim is nil or unbound.
func readBoundVolume(ctx context.Context, from client.Reader, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	if claim == nil {
		return nil, nil
	}
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, from, index.ClusterScopedKey(claim.Spec.VolumeName))
	if pv != nil && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID {
		return pv, err
	}
	return nil, err
}

// anyOtherPodOfClaim reports whether another unfinished Pod that uses a claim has a property.
func (r *reconciler) anyOtherPodOfClaim(ctx context.Context, claim types.NamespacedName, pod *corev1.Pod, is func(*corev1.Pod) bool) (bool, error) {
	users, err := index.PodsOfClaim(ctx, r.Host, claim)
	return slices.ContainsFunc(users, func(user corev1.Pod) bool {
		return user.UID != pod.UID && !podstatus.IsPodFinished(&user) && is(&user)
	}), err
}

// podPrecedes orders Pods by age. Exactly one of a claim's Pods is preceded by none, so that one Pod becomes the
// claim's consumer.
func podPrecedes(a, b *corev1.Pod) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}

// provisionedByXylem reports whether Xylem provisions an unbound claim.
func (r *reconciler) provisionedByXylem(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	if provisioner, requested := claim.Annotations[volumehelpers.AnnStorageProvisioner]; requested {
		return provisioner == v1alpha1.ProvisionerName, nil
	}
	class, err := index.FindObject[storagev1.StorageClass](ctx, r.Host, index.ClusterScopedKey(hostpv.ClassNameOf(claim)))
	return hostpv.IsXylemClass(class), err
}

// leafClassWaits reports whether a leaf claim's class has binding mode WaitForFirstConsumer.
func (r *reconciler) leafClassWaits(ctx context.Context, leaf *corev1.PersistentVolumeClaim) (bool, error) {
	class, err := index.FindObject[storagev1.StorageClass](ctx, r.Cache, index.ClusterScopedKey(ptr.Deref(leaf.Spec.StorageClassName, "")))
	if err != nil || class == nil {
		return false, err
	}
	return hostpv.WaitsForConsumer(class), nil
}

// observeReferences observes which of the Pod's ConfigMaps and Secrets have no copy in the member yet. The
// Pod does not wait for an optional one that the host lacks, because no other object can have the
// copy's name. A Pod that had a leaf does not get another one, so its references do not matter.
func (r *reconciler) observeReferences(ctx context.Context, o *lifecycle.Observed) error {
	if podstatus.HadLeafPod(o.Root) {
		return nil
	}
	namespace, err := index.FindObject[corev1.Namespace](ctx, r.Host, index.ClusterScopedKey(o.Root.Namespace))
	o.HostNamespace = placement.NamespaceOf(o.Root.Namespace, namespace)
	if err != nil || namespace == nil {
		return err
	}
	o.Copies = mirror.ConfigCopies{HostID: r.HostID, NamespaceUID: namespace.UID}
	if !o.NamespaceAnswer().AllowedNow() {
		return nil // the Pod waits for another cause
	}
	all := r.referencesToCopy(o.Root)
	slices.SortStableFunc(all, orderRequiredFirst)
	var absent []string
	for _, ref := range all {
		if len(absent) == maxNamedObjects || len(o.MissingCopies) == maxNamedObjects || o.ReferenceProblem != nil || ref.Optional && len(absent) > 0 {
			break // the Pod waits in any case
		}
		found, err := r.observeReference(ctx, o, ref)
		if err != nil {
			return err
		}
		if !found && !ref.Optional {
			absent = append(absent, fmt.Sprintf("%s %q", ref.Kind, ref.Name))
		}
	}
	if o.ReferenceProblem == nil && len(absent) > 0 {
		if len(absent) == maxNamedObjects {
			absent = append(absent, "and possibly others")
		}
		o.ReferenceProblem = mirror.NewRefusal(v1alpha1.ReasonReferenceMissing, "Xylem does not push the Pod to member %q: namespace %q of the host lacks objects that the Pod refers to (%s). Create them in that namespace, or mark the references as optional",
			r.Registration, o.Root.Namespace, strings.Join(absent, ", "))
	}
	return nil
}

// referencesToCopy returns the objects that a Pod refers to and whose copies precede its leaf.
func (r *reconciler) referencesToCopy(root *corev1.Pod) []refs.Reference {
	all, _ := refs.BoundedReferencesOf(root)
	if !r.SecretsAsNode || root.Spec.NodeName != "" {
		return all
	}
	// A node may read only the Secrets of its bound Pods, so their copies follow the leaf.
	return slices.DeleteFunc(all, func(ref refs.Reference) bool { return ref.Kind == refs.KindSecret })
}

// observeReference observes an object that the Pod refers to. It returns false if neither the member nor the
// host has it.
func (r *reconciler) observeReference(ctx context.Context, o *lifecycle.Observed, ref refs.Reference) (found bool, err error) {
	if copied, err := r.hasCopyInMember(ctx, o, ref); err != nil || copied {
		return copied, err
	}
	found, refusal, err := r.findReferenceInHost(ctx, o, ref)
	switch {
	case err != nil || !found:
		return false, err
	case refusal == nil:
		o.MissingCopies = append(o.MissingCopies, fmt.Sprintf("%s %q", ref.Kind, ref.Name))
	case !ref.Optional:
		o.ReferenceProblem = refusal
	}
	return true, nil
}

// orderRequiredFirst sorts optional references after the others, because a Pod that lacks an object waits
// anyway.
func orderRequiredFirst(a, b refs.Reference) int {
	switch {
	case a.Optional == b.Optional:
		return 0
	case b.Optional:
		return -1
	}
	return 1
}

// hasCopyInMember reports whether the member has a copy of an object that the Pod refers to.
func (r *reconciler) hasCopyInMember(ctx context.Context, o *lifecycle.Observed, ref refs.Reference) (bool, error) {
	key := types.NamespacedName{Namespace: o.Root.Namespace, Name: o.Copies.NameOfCopy(ref.Name)}
	var origin mirror.Origin
	var err error
	if ref.Kind == refs.KindSecret {
		_, origin, err = index.FindStamped[corev1.Secret](ctx, r.Cache, r.HostID, key)
	} else {
		_, origin, err = index.FindStamped[corev1.ConfigMap](ctx, r.Cache, r.HostID, key)
	}
	return origin.Root.Name == ref.Name, err
}

// findReferenceInHost reports whether the host has an object that the Pod refers to. It reads live, because
// Secrets are not watched in the host. refusal is the reason why the object is not copied.
func (r *reconciler) findReferenceInHost(ctx context.Context, o *lifecycle.Observed, ref refs.Reference) (found bool, refusal *mirror.Refusal, err error) {
	key := types.NamespacedName{Namespace: o.Root.Namespace, Name: ref.Name}
	if ref.Kind == refs.KindConfigMap {
		root, err := index.FindObject[corev1.ConfigMap](ctx, r.HostLive, key)
		if root == nil {
			return false, nil, err
		}
		_, err = refs.TranslateConfigMap(root, o.Copies)
		return translationResult(ref, err)
	}
	secrets, err := r.SecretReader(o.Root.Spec.NodeName)
	if err != nil {
		return false, nil, err
	}
	root, err := index.FindObject[corev1.Secret](ctx, secrets, key)
	if root == nil {
		return false, nil, err
	}
	_, err = refs.TranslateSecret(root, o.Copies)
	return translationResult(ref, err)
}

// translationResult returns the results of findReferenceInHost for an object that the host has.
func translationResult(ref refs.Reference, err error) (found bool, refusal *mirror.Refusal, _ error) {
	if err != nil && !errors.As(err, &refusal) {
		return true, nil, fmt.Errorf("translate %s %s: %w", ref.Kind, ref.Name, err)
	}
	return true, refusal, nil
}
