package lifecycle

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume"
)

var all = flag.Bool("all", false, "test all combinations in TestEveryCombination, instead of a sample")

// sample is the number of combinations to test, unless -all is set.
const sample = 500_000

const (
	deletes = corev1.PersistentVolumeReclaimDelete
	retains = corev1.PersistentVolumeReclaimRetain
	gone    = types.UID("gone-root")
	consent = types.UID("the label of consent, and no stamp")
)

var (
	deleted     = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	hostPVs     = []corev1.PersistentVolumePhase{corev1.VolumeAvailable, corev1.VolumeBound, corev1.VolumeReleased, corev1.VolumeFailed}
	leafPVs     = []corev1.PersistentVolumePhase{corev1.VolumeAvailable, corev1.VolumeBound, corev1.VolumeReleased}
	claimPhases = []corev1.PersistentVolumeClaimPhase{corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost}
	policies    = []corev1.PersistentVolumeReclaimPolicy{deletes, retains, corev1.PersistentVolumeReclaimRecycle}
)

var member = mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"}

// key is the namespace and name of the root claim and of its leaf claim.
var key = types.NamespacedName{Namespace: "shop", Name: "data"}

func originOf(uid types.UID) mirror.Origin {
	return mirror.Origin{HostID: member.HostID, Root: key, UID: uid}
}

func at(deleting bool) *metav1.Time {
	if deleting {
		return &deleted
	}
	return nil
}

// roots returns all variants of the root claim. nil means that the claim does not exist.
func roots() []*corev1.PersistentVolumeClaim {
	all := []*corev1.PersistentVolumeClaim{nil}
	for _, volume := range []string{"", hostPV.Name, "another"} {
		for _, placed := range []string{"", member.ClusterID, "id39"} {
			for _, deleting := range []bool{false, true} {
				all = append(all, rootClaim(volume, placed, deleting))
			}
		}
	}
	return all
}

func rootClaim(volume, placed string, deleting bool) *corev1.PersistentVolumeClaim {
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "root", DeletionTimestamp: at(deleting)}}
	root.Spec.VolumeName = volume
	if placed != "" {
		root.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: placed}
	}
	return root
}

// hosts returns all variants of the host PV.
func hosts() []*corev1.PersistentVolume {
	all := []*corev1.PersistentVolume{nil}
	for _, ref := range []*corev1.ObjectReference{nil, refOf("root"), refOf(gone), refOf("")} {
		for _, phase := range hostPVs {
			for _, policy := range policies {
				for flags := range hostFlags {
					all = append(all, hostVolume(ref, phase, policy, flags))
				}
			}
		}
	}
	return all
}

// The flags of hostVolume.
const (
	hostDeletes = 1 << iota
	hostWithoutFinalizer
	hostAbandoned
	hostImported
	hostCopied
	hostFlags
)

func hostVolume(ref *corev1.ObjectReference, phase corev1.PersistentVolumePhase, policy corev1.PersistentVolumeReclaimPolicy, flags int) *corev1.PersistentVolume {
	pv := hostPV.DeepCopy()
	if flags&hostImported != 0 {
		pv.Spec.CSI.VolumeAttributes = nil
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, v1alpha1.AttributeLeafUID, "leaf-1")
	}
	pv.Spec.ClaimRef, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy = ref, phase, policy
	pv.DeletionTimestamp = at(flags&hostDeletes != 0)
	if flags&hostWithoutFinalizer != 0 {
		pv.Finalizers = nil
	}
	if flags&hostAbandoned != 0 {
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, v1alpha1.AnnotationAbandon, "true")
	}
	if flags&hostCopied != 0 {
		pv = hostpv.VolumeWithCopyIn(pv, "id39")
	}
	return pv
}

// leafClaims returns all variants of the leaf claim, for the root and for a deleted root.
func leafClaims() []*corev1.PersistentVolumeClaim {
	all := []*corev1.PersistentVolumeClaim{nil}
	for _, uid := range []types.UID{"root", gone} {
		for _, volume := range []string{"", "pv-1", "pv-2"} {
			for _, phase := range claimPhases {
				for _, deleting := range []bool{false, true} {
					all = append(all, leafClaim(uid, volume, phase, deleting))
				}
			}
		}
	}
	return all
}

func leafClaim(root types.UID, volume string, phase corev1.PersistentVolumeClaimPhase, deleting bool) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "leaf-claim", DeletionTimestamp: at(deleting)}}
	claim.Spec.VolumeName, claim.Status.Phase = volume, phase
	originOf(root).StampLeaf(claim)
	return claim
}

// leaves returns all variants of the leaf PV.
func leaves() []*corev1.PersistentVolume {
	all := []*corev1.PersistentVolume{nil}
	for _, stamp := range []types.UID{"", consent, "root", gone, "host-pv", "earlier-pv"} {
		for _, own := range []string{string(deletes), string(retains), ""} {
			for _, policy := range policies {
				for _, ref := range []*corev1.ObjectReference{nil, refOf("leaf-claim"), refOf("another")} {
					for _, phase := range leafPVs {
						for _, deleting := range []bool{false, true} {
							all = append(all, leafVolume(stamp, own, policy, ref, phase, deleting))
						}
					}
				}
			}
		}
	}
	return all
}

func leafVolume(stamp types.UID, own string, policy corev1.PersistentVolumeReclaimPolicy, ref *corev1.ObjectReference, phase corev1.PersistentVolumePhase, deleting bool) *corev1.PersistentVolume {
	pv := leafPV()
	pv.Spec.PersistentVolumeReclaimPolicy, pv.Spec.ClaimRef, pv.Status.Phase, pv.DeletionTimestamp = policy, ref, phase, at(deleting)
	switch stamp {
	case "":
	case consent:
		metav1.SetMetaDataLabel(&pv.ObjectMeta, v1alpha1.LabelHost, member.HostID)
	case "host-pv", "earlier-pv":
		mirror.Origin{HostID: member.HostID, Root: types.NamespacedName{Name: hostPV.Name}, UID: stamp}.StampLeaf(pv)
	default:
		originOf(stamp).StampLeaf(pv)
	}
	if own != "" {
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, v1alpha1.AnnotationReclaimPolicy, own)
	}
	return pv
}

// restore is the cluster that was restored after the leaf claim was created.
type restore int

const (
	noRestore restore = iota
	memberRestore
	hostRestore
	restores // the number of variants
)

// combination returns the observation of a set of objects, related as the observer relates them.
// The host PV represents this leaf PV or, if earlier is set, another one that had its name.
func combination(living *corev1.PersistentVolumeClaim, host *corev1.PersistentVolume, earlier bool, claim *corev1.PersistentVolumeClaim, leaf *corev1.PersistentVolume, restored restore) *volume.Observed {
	s := &volume.Observed{Member: member, Name: "pv-1", UID: "leaf-1", Leaf: leaf, MayBeRestored: restored == memberRestore}
	if leaf != nil {
		s.Stamp, s.LeafStamped = mirror.LeafOriginFromHost(member.HostID, leaf)
		if living != nil && s.LeafStamped && s.Stamp.UID == living.UID {
			s.StampRoot = living
		}
	}
	switch {
	case host == nil:
	case earlier:
		s.EarlierHosts = []corev1.PersistentVolume{*host}
	default:
		s.Host = host
	}
	owner := s.HostClaimRefUID()
	if claim != nil {
		origin, _ := mirror.LeafOriginFromHost(member.HostID, claim)
		switch {
		case owner == "" || owner == origin.UID:
			s.LeafClaim, s.Origin, owner = claim, origin, origin.UID
		case hostpv.ClaimRefHasUIDOf(leaf, claim) && claim.Spec.VolumeName == s.Name:
			s.Holder, s.HolderOrigin = claim, origin
			if living != nil && living.UID == origin.UID {
				s.HolderRoot = living
			}
		case claim.Spec.VolumeName == s.Name && (living == nil || living.UID != origin.UID):
			s.LeftoverClaim = claim
		}
	}
	if owner == "" && s.LeafStamped {
		owner = s.Stamp.UID
	}
	if s.LeafClaim == nil {
		s.Origin = originOf(owner)
	}
	switch {
	case living == nil || owner == "":
	case owner == living.UID:
		s.Root = living
	default:
		s.Successor = living
	}
	s.RootMayBeLost = restored == hostRestore && s.LeafClaim != nil && s.Root == nil
	last, another := s.LastOtherOrigin()
	s.LastClaimMayBeLost = restored == hostRestore && another && (living == nil || living.UID != last.UID)
	return s
}

// withSource returns an observation in which the root has a data source. If which is 1, the leaf
// claim also has it. If which is 2, the leaf claim lacks it.
func withSource(s *volume.Observed, which int) *volume.Observed {
	if which == 0 || s.Root == nil {
		return s
	}
	source := &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
	s.Root = s.Root.DeepCopy()
	s.Root.Spec.DataSource = source
	if which == 1 && s.LeafClaim != nil {
		s.LeafClaim = s.LeafClaim.DeepCopy()
		s.LeafClaim.Spec.DataSource = source
	}
	return s
}

// hostPV represents the leaf PV.
var hostPV = func() *corev1.PersistentVolume {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root"}}
	pv := hostpv.TranslateVolume(leafPV(), claim, deletes, member)
	pv.UID = "host-pv"
	return pv
}()

func leafPV() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-1"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}},
	}}
}

func refOf(uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: uid}
}

// destructive are the steps that end a volume's host PV, or may destroy the volume.
var destructive = []Step{SetDelete, DeleteClaim, DropHost, SetDeleteUnused, DeleteUnused, DestroyUnmirrored}

// wrong returns why a plan is wrong, or "".
func wrong(s *volume.Observed, p Plan) string {
	if (p.Step == Stamp || p.Step == CreateHost || p.Step == Fulfil) && s.Host == nil && s.Root != nil && s.Root.Spec.VolumeName == "" &&
		s.LeafClaim != nil && !mirror.SameDataSource(s.Root, s.LeafClaim) {
		return "a claim with a data source gets an empty disk"
	}
	retained := s.Leaf == nil || s.Leaf.Spec.PersistentVolumeReclaimPolicy == retains
	destroyed := s.Host != nil && hostpv.IsReleasedOrFailed(s.Host) && !hostpv.IsAbandonedVolume(s.Host) && s.Host.Spec.PersistentVolumeReclaimPolicy == deletes &&
		(s.Leaf == nil || s.LeafStamped && s.OriginalReclaimPolicy() == deletes)
	if s.Host != nil && !hostpv.IsAbandonedVolume(s.Host) && len(hostpv.MembersWithCopies(s.Host)) > 0 && slices.Contains(destructive, p.Step) {
		return "a volume is released although another member may have a copy (I2)"
	}
	if s.LastClaimMayBeLost && s.Host != nil && s.Leaf != nil && s.LeafStamped && (!isTerminating(s.Host) || s.HasXylemFinalizer()) && !hostpv.IsAbandonedVolume(s.Host) &&
		s.Host.Spec.PersistentVolumeReclaimPolicy != retains && slices.Contains(append([]Step{DeleteStale, Repoint, Stamp, CreateClaim}, destructive...), p.Step) {
		return "the last record of a claim that the host lost is removed before the volume is retained (I2)"
	}
	switch p.Step {
	case SetDelete:
		if !destroyed || s.Root != nil {
			return "a leaf PV's policy is set to Delete although its destruction was not requested (I2)"
		}
	case DeleteClaim:
		if !hostpv.IsReleasedOrFailed(s.Host) || s.Root != nil || !destroyed && !retained {
			return "a leaf claim is deleted although its volume may be destroyed with it (I2)"
		}
	case DeleteStale, DeleteRetained:
		if !retained {
			return "a leaf claim is deleted although its volume is destroyed with it (I2)"
		}
		if p.Step == DeleteStale && s.StaleLeafClaim() == nil || p.Step == DeleteRetained && s.Root != nil {
			return "a leaf claim is deleted although its root exists (I2)"
		}
	case DeleteLeft:
		if s.Leaf != nil && !retained && (s.HeldByLeafClaim() || hostpv.ClaimRefHasUIDOf(s.Leaf, s.LeftoverClaim)) {
			return "a leaf claim is deleted although its volume is destroyed with it (I2)"
		}
	case Repoint:
		if !s.LeafStamped || s.Leaf.Status.Phase == corev1.VolumeBound {
			return "a volume is taken from a claim that uses it, or may not belong to this host (I4)"
		}
	case Take:
		switch _, stamp := mirror.LeafOriginFromHost(member.HostID, s.Leaf); {
		case s.Host == nil || !hostpv.IsImportedVolume(s.Host) || s.Host.DeletionTimestamp != nil || s.NamedByLeafClaim() || s.Holder != nil:
			return "a leaf PV is stamped for a host PV that does not represent it, or that is being deleted"
		case stamp && s.Stamp.Root.Namespace != "" || s.Leaf.Labels[v1alpha1.LabelHost] != member.HostID || s.Leaf.DeletionTimestamp != nil:
			return "a leaf PV is taken without consent (I4)"
		case s.Leaf.Status.Phase == corev1.VolumeBound || s.Leaf.Status.Phase == corev1.VolumeAvailable && s.Leaf.Spec.ClaimRef != nil || s.Leaf.Status.Phase == corev1.VolumeReleased && !retained:
			return "a leaf PV is adopted although it is in use in the member, or being deleted (I4)"
		case volume.TakenLeafVolume(s) == nil || volume.TakenLeafVolume(s).Spec.PersistentVolumeReclaimPolicy != retains:
			return "a leaf PV is taken without policy Retain, or repeatedly (I2, I5)"
		}
	case Fulfil:
		if !retained {
			return "a promise is fulfilled with a volume that is destroyed with its leaf claim (I2)"
		}
	case DestroyUnmirrored:
		if s.Host != nil || len(s.EarlierHosts) > 0 || s.LeafStamped || s.MayBeRestored || s.RootMayBeLost || s.Root != nil {
			return "a volume that may have been mirrored is destroyed (I2)"
		}
	case DeleteLost:
		if s.Leaf != nil || s.Host != nil || s.Root != nil {
			return "a leaf claim that has a volume is treated as lost"
		}
	case Withdraw:
		if s.LeafClaim.Spec.VolumeName != "" {
			return "a leaf claim that has a volume is withdrawn (I2)"
		}
	case DropHost:
		if s.Leaf != nil || s.NamedByLeafClaim() || !destroyed {
			return "the host drops its record of a volume that still exists (I1)"
		}
	case CreateHost:
		if s.Host != nil || s.Root.Spec.VolumeName != "" && s.HostVolumeName(s.Root) != s.Root.Spec.VolumeName || s.PlacedClusterID() != member.ClusterID {
			return "a volume is mirrored for a claim that has another volume, or will be bound to one elsewhere (I3)"
		}
	case CreateClaim:
		if s.LeafClaim != nil || !s.BoundToRoot() || s.Leaf == nil {
			return "a leaf claim is created although its volume does not exist (I3)"
		}
	case Secure, SetRetain, Stamp:
		if !s.LeafStamped && !s.HeldByLeafClaim() && s.Holder == nil {
			return "a write to a leaf PV is planned that package guarded would reject as foreign (I4)"
		}
		if volume.SecuredLeafVolume(s) == nil && volume.StampedLeafVolume(s) == nil && volume.RetainedLeafVolume(s) == nil {
			return "a leaf PV is written although it is up to date (I5)"
		}
	case UpdateHost:
		if volume.CurrentHostVolume(s) == nil {
			return "a host PV is written although it is up to date (I5)"
		}
	default: // neither destroys nor creates anything
	}
	settled := s.BoundToRoot() && s.HeldByLeafClaim() && s.PlacedClusterID() == member.ClusterID && s.LeafClaim.Status.Phase == corev1.ClaimBound
	switch {
	case p.Step != None && p.Owner == "":
		return "no controller takes the step"
	case p.Step == None && p.Owner == "" && p.Phase != Foreign:
		return "no controller reports the state"
	case p.Step == None && p.Report == nil && s.BoundToRoot() && s.Root.DeletionTimestamp == nil && !settled && !hostpv.IsAbandonedVolume(s.Host) && !waits(s):
		return "a bound claim has no volume in the member, and no controller reports it (I6)"
	}
	return ""
}

// waits reports whether Kubernetes is about to change a bound claim's counterpart.
func waits(s *volume.Observed) bool {
	switch {
	case hostpv.IsReleasedOrFailed(s.Host):
		return true // the host's PV controller reports the claim as lost, or binds it again
	case s.LeafClaim == nil:
		return false
	case isTerminating(s.LeafClaim), s.LeafClaim.Spec.VolumeName == "" && s.Leaf != nil && hostpv.ClaimRefNamesClaim(s.Leaf, s.LeafClaim):
		return true
	}
	// The member's PV controller is about to bind the claim and the PV.
	return s.NamedByLeafClaim() && s.Leaf != nil && (s.Leaf.Spec.ClaimRef == nil || s.HeldByLeafClaim())
}

// For every combination of objects, the plan for a volume destroys nothing without a reason, and
// reports to the user why the volume waits.
func TestEveryCombination(t *testing.T) {
	roots, hosts, claims, leaves := roots(), hosts(), leafClaims(), leaves()
	total := len(roots) * len(hosts) * 2 * len(claims) * len(leaves) * int(restores) * 3
	stride := 1
	switch {
	case *all:
	case testing.Short():
		stride = 5*total/sample | 1
	default:
		stride = total/sample | 1
	}
	var seen, failures atomic.Int64
	var mu sync.Mutex
	steps := map[Step]int{}
	var workers sync.WaitGroup
	const side = 4
	for w := range side {
		workers.Go(func() {
			counted := map[Step]int{}
			for n := w * stride; n < total; n += side * stride {
				rest := n
				next := func(n int) int {
					value := rest % n
					rest /= n
					return value
				}
				host, earlier := hosts[next(len(hosts))], next(2) == 1
				leaf := leaves[next(len(leaves))]
				if earlier && (host == nil || leaf == nil) {
					continue // same as without an earlier host PV
				}
				sourced := next(3)
				s := combination(roots[next(len(roots))], host, earlier, claims[next(len(claims))], leaf, restore(next(int(restores))))
				s = withSource(s, sourced)
				seen.Add(1)
				p := NextPlan(s)
				counted[p.Step]++
				if why := wrong(s, p); why != "" && failures.Add(1) <= 20 {
					t.Errorf("combination %d: %s: %s %s by %s: %s", n, why, p.Phase, p.Step, p.Owner, describe(s))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for step, n := range counted {
				steps[step] += n
			}
		})
	}
	workers.Wait()
	t.Logf("%d of about %d observations, %d wrong; steps: %v", seen.Load(), total, failures.Load(), steps)
}

// For every leaf claim and leaf PV without a host PV and without a root, the plan destroys nothing
// that may have been mirrored, or whose claim the host may have lost. TestEveryCombination rarely
// combines these.
func TestEveryUnmirrored(t *testing.T) {
	steps := map[Step]int{}
	asks := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "root"}}
	asks.Spec.VolumeName = hostPV.Name
	for _, root := range []*corev1.PersistentVolumeClaim{nil, asks} {
		for _, claim := range leafClaims() {
			for _, leaf := range leaves() {
				for restored := range restores {
					s := combination(root, nil, false, claim, leaf, restored)
					p := NextPlan(s)
					steps[p.Step]++
					if why := wrong(s, p); why != "" {
						t.Fatalf("%s: %s %s by %s: %s", why, p.Phase, p.Step, p.Owner, describe(s))
					}
				}
			}
		}
	}
	for _, step := range []Step{DestroyUnmirrored, Stamp} {
		if steps[step] == 0 {
			t.Errorf("step %s is never taken", step)
		}
	}
}

func describe(s *volume.Observed) string {
	text := fmt.Sprintf("member restored %t, root lost %t, last claim lost %t", s.MayBeRestored, s.RootMayBeLost, s.LastClaimMayBeLost)
	if s.Root != nil {
		text += fmt.Sprintf("; root names %q, placed %q, deleting %t", s.Root.Spec.VolumeName, s.PlacedClusterID(), isTerminating(s.Root))
	}
	if s.Host != nil {
		text += fmt.Sprintf("; host PV %s %s claimRef %v finalizers %v deleting %t abandoned %t", s.Host.Status.Phase, s.Host.Spec.PersistentVolumeReclaimPolicy,
			s.Host.Spec.ClaimRef, s.Host.Finalizers, isTerminating(s.Host), hostpv.IsAbandonedVolume(s.Host))
	}
	if len(s.EarlierHosts) > 0 {
		text += fmt.Sprintf("; earlier host PV for %v", s.EarlierHosts[0].Spec.ClaimRef)
	}
	for name, claim := range map[string]*corev1.PersistentVolumeClaim{"leaf claim": s.LeafClaim, "holder": s.Holder} {
		if claim != nil {
			text += fmt.Sprintf("; %s names %q %s deleting %t", name, claim.Spec.VolumeName, claim.Status.Phase, isTerminating(claim))
		}
	}
	if s.Leaf != nil {
		text += fmt.Sprintf("; leaf PV %s %s stamp %q own %q claimRef %v deleting %t", s.Leaf.Status.Phase, s.Leaf.Spec.PersistentVolumeReclaimPolicy,
			s.Stamp.UID, s.Leaf.Annotations[v1alpha1.AnnotationReclaimPolicy], s.Leaf.Spec.ClaimRef, isTerminating(s.Leaf))
	}
	return text
}
