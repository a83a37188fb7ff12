package leafpv

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// promised binds the root to a promise that is placed in this member.
func promised(s *volume.Observed) {
	s.Class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: v1alpha1.ProvisionerName, Parameters: map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise}}
	promise := hostpv.NewPromiseFor(s.Root, s.Class)
	promise.Status.Phase = corev1.VolumeBound
	s.Root.Spec.VolumeName = promise.Name
	s.Promise = hostpv.PromiseWithMember(promise, here, nil)
}

func scratch(s *volume.Observed) {
	s.Promise.Spec.CSI.VolumeAttributes[v1alpha1.ParameterRelease] = v1alpha1.ReleaseWhenUnused
	s.Promise.Spec.NodeAffinity = hostpv.NewPromiseFor(s.Root, hostpv.ClassOfPromise(s.Promise)).Spec.NodeAffinity
}

// kept fulfills the promise with the leaf PV.
func kept(s *volume.Observed) {
	s.Host = hostpv.FulfillPromise(s.Promise, s.Leaf, deletes, here)
	s.Promise = nil
}

func releasing(s *volume.Observed) {
	s.Host.Annotations[v1alpha1.AnnotationReleasing] = string(s.Leaf.UID)
	s.Leaf.Spec.PersistentVolumeReclaimPolicy = deletes
}

// reused binds the root to the promise of an earlier claim, and no host PV belongs to the root.
// lost means that no host PV has that promise's name either.
func reused(s *volume.Observed) { s.Root.Spec.VolumeName, s.Promise = "pvc-mock-earlier", nil }
func lost(s *volume.Observed)   { s.PromiseLost = true }

func madeAgain(s *volume.Observed) {
	s.Promise = hostpv.PromiseWithMember(hostpv.NewPromiseFor(s.Root, s.Class), here, nil)
	s.Promise.Name = s.Root.Spec.VolumeName
}

// unbound makes the root unbound, as after the host was restored to an earlier state.
func unbound(s *volume.Observed) { s.Root.Spec.VolumeName = "" }

func noPromise(s *volume.Observed)   { s.Promise = nil }
func notLabelled(s *volume.Observed) { s.Promise.Labels = nil }

// keptByOther fulfills the promise with another leaf PV.
func keptByOther(s *volume.Observed) {
	other := s.Leaf.DeepCopy()
	other.Name, other.UID = "pv-2", "other-uid"
	s.Promise = hostpv.FulfillPromise(s.Promise, other, deletes, here)
}

func TestNextOfPromise(t *testing.T) {
	const (
		none       = ""
		stamp      = "leaf_pv Stamp"
		hold       = "leaf_pv SetRetain"
		fulfil     = "leaf_pv Fulfil"
		keepHost   = "leaf_pv UpdateHost"
		createHost = "leaf_pv CreateHost"
		surplus    = "leaf_pv Surplus"
		orphan     = "leaf_pv Orphaned"
	)
	for name, tc := range map[string]struct {
		there *volume.Observed
		want  string
	}{
		"the member has just bound the leaf claim":                                       {seen(promised), stamp},
		"the leaf PV is stamped and retained":                                            {seen(promised, stamped), fulfil},
		"an admin abandons the promise":                                                  {seen(promised, stamped, func(s *volume.Observed) { s.Promise.Annotations[v1alpha1.AnnotationAbandon] = "true" }), none},
		"the promise has no member label yet":                                            {seen(promised, stamped, notLabelled), none},
		"the promise has another member's label":                                         {seen(promised, stamped, func(s *volume.Observed) { s.Promise.Labels[v1alpha1.LabelClusterID] = "id39" }), none},
		"the promise is not in the cache yet":                                            {seen(promised, stamped, noPromise), none},
		"the promise was lost":                                                           {seen(promised, stamped, noPromise, lost), none},
		"the promise was fulfilled with another volume (I3)":                             {seen(promised, stamped, keptByOther), surplus},
		"the root is placed in another member (I3)":                                      {seen(promised, stamped, func(s *volume.Observed) { s.Root.Annotations[v1alpha1.AnnotationPlacedIn] = "id39" }), surplus},
		"a reused promise was lost":                                                      {seen(promised, stamped, reused, lost), none},
		"a reused promise belongs to another claim (I3)":                                 {seen(promised, stamped, reused), surplus},
		"a reused promise was re-created":                                                {seen(promised, stamped, reused, madeAgain), fulfil},
		"the root is bound to another claim's promise (I3)":                              {seen(promised, stamped, func(s *volume.Observed) { s.Root.Spec.VolumeName = "pvc-mock-other" }), surplus},
		"the leaf claim was lost before the promise was fulfilled":                       {seen(promised, stamped, noClaim), fulfil},
		"the leaf claim was lost, and the leaf PV has policy Delete: retained":           {seen(promised, stamped, noClaim, leafPolicy(deletes)), hold},
		"the claim was deleted before the leaf PV was stamped":                           {seen(promised, rootGone), none},
		"the claim was deleted after the leaf PV was stamped":                            {seen(promised, stamped, rootGone), fulfil},
		"the claim and the promise were deleted":                                         {seen(promised, stamped, rootGone, noPromise), "root_pvc DeleteRetained"},
		"the claim, the promise and the leaf claim were deleted":                         {seen(promised, stamped, rootGone, noPromise, noClaim), orphan},
		"the claim was deleted, and the promise has no member label":                     {seen(promised, stamped, rootGone, notLabelled), "root_pvc DeleteRetained"},
		"the claim and the leaf claim were deleted, and the promise has no member label": {seen(promised, stamped, rootGone, notLabelled, noClaim), orphan},
		"the leaf PV is stamped and retained, but being deleted":                         {seen(promised, stamped, terminating), none},
		"the member's PV controller has not bound the claim yet":                         {seen(promised, stamped, func(s *volume.Observed) { s.LeafClaim.Status.Phase = corev1.ClaimPending }), none},
		"the leaf claim was lost, and the promise has no member label":                   {seen(promised, stamped, noClaim, notLabelled), none},
		"the leaf claim was lost, and the leaf PV is being deleted":                      {seen(promised, stamped, noClaim, terminating), none},
		"the claim is gone, and the leaf PV is being deleted":                            {seen(promised, stamped, rootGone, terminating), none},
		"the promise is fulfilled":                                                       {seen(promised, stamped, kept), none},
		"the promise is fulfilled, and the volume has grown": {seen(promised, stamped, kept, func(s *volume.Observed) {
			s.Leaf.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		}), keepHost},
		"the promise is fulfilled, and a user set the leaf PV to Delete":       {seen(promised, stamped, kept, leafPolicy(deletes)), stamp},
		"the promise is being released: root_pv has set the leaf PV to Delete": {seen(promised, scratch, stamped, kept, releasing), none},
		"the promise is being released, and an admin sets the host PV to Retain": {seen(promised, scratch, stamped, kept, releasing, func(s *volume.Observed) {
			s.Host.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}), hold},
		"the host was restored to a state before the binding":                                                               {seen(promised, stamped, unbound), fulfil},
		"the host was restored to a state before the promise existed":                                                       {seen(promised, stamped, unbound, noPromise), none},
		"the host was restored to a state before the promise existed, and the class is now in mirror mode":                  {seen(promised, stamped, unbound, noPromise, func(s *volume.Observed) { s.Class.Parameters = nil }), createHost},
		"the promise is being released, and the leaf claim was deleted":                                                     {seen(promised, scratch, stamped, kept, releasing, noClaim), none},
		"the promise is being released, and its finalizer was removed when the cluster was deregistered":                    {seen(promised, scratch, stamped, kept, releasing, noFinalizer), keepHost},
		"the promise is being released, its finalizer was removed when the cluster was deregistered, and the claim is gone": {seen(promised, scratch, stamped, kept, releasing, noFinalizer, rootGone, released), keepHost},
		"a release mark is ignored if the promise is not released when unused":                                              {seen(promised, stamped, kept, releasing), stamp},
	} {
		t.Run(name, func(t *testing.T) {
			plan := lifecycle.NextPlan(observedOf(t, tc.there))
			got := none
			switch by := string(plan.Owner) + " "; {
			case plan.Owner != lifecycle.LeafPV && tc.want == none:
			case plan.Step != lifecycle.None:
				got = by + string(plan.Step)
			case plan.Report != nil || plan.Phase == lifecycle.Orphaned:
				got = by + string(plan.Phase)
			}
			if got != tc.want {
				t.Errorf("the next step is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestFulfil checks that a fulfilled promise represents the leaf PV, and that nothing remains to be
// done.
func TestFulfil(t *testing.T) {
	for name, there := range map[string]*volume.Observed{"on claim deletion": seen(promised, stamped), "when unused": seen(promised, scratch, stamped)} {
		t.Run(name, func(t *testing.T) {
			s := observedOf(t, there)
			plan := lifecycle.NextPlan(s)
			if step := plan.StepOwnedBy(lifecycle.LeafPV); step != lifecycle.Fulfil {
				t.Fatalf("the next step is %q, want Fulfil", step)
			}
			after, _ := take(t, s, plan)
			if after == nil {
				t.Fatal("nothing was written, want the fulfilled promise")
			}
			cluster, leaf, uid, ours := hostpv.LeafOfHostVolume(after)
			if !ours || cluster != here.ClusterID || leaf != s.Leaf.Name || uid != s.Leaf.UID {
				t.Errorf("the promise represents cluster %q, leaf PV %q, UID %q (%t), want the observed leaf PV", cluster, leaf, uid, ours)
			}
			there.Host, there.Promise = after, nil
			if step := lifecycle.NextPlan(observedOf(t, there)).StepOwnedBy(lifecycle.LeafPV); step != lifecycle.None {
				t.Errorf("the next step is %q, want none", step)
			}
		})
	}
}
