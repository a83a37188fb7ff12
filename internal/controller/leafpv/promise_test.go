package leafpv

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// promised: the root is bound to a promise that this member has.
func promised(o *observed) {
	o.class = &storagev1.StorageClass{Parameters: map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise}}
	promise := mirror.PromiseFor(o.root, o.class)
	promise.Status.Phase = corev1.VolumeBound
	o.root.Spec.VolumeName = promise.Name
	o.promise = mirror.WithMember(promise, here, nil)
}

func scratch(o *observed) {
	o.promise.Spec.CSI.VolumeAttributes[v1alpha1.ParameterRelease] = v1alpha1.ReleaseWhenUnused
	o.promise.Spec.NodeAffinity = mirror.PromiseFor(o.root, mirror.PromiseClass(o.promise)).Spec.NodeAffinity
}

// kept: the promise is fulfilled with the leaf PV.
func kept(o *observed) {
	o.host = mirror.Fulfil(o.promise, o.leaf, deletes, here)
	o.promise = nil
}

func releasing(o *observed) {
	o.host.Annotations[v1alpha1.AnnotationReleasing] = string(o.leaf.UID)
	o.leaf.Spec.PersistentVolumeReclaimPolicy = deletes
}

// reused: the root is bound to the promise of an earlier claim, and no PV of the host
// is its; lost: nor is there one of that name.
func reused(o *observed) { o.root.Spec.VolumeName, o.promise = "pvc-mock-earlier", nil }
func lost(o *observed)   { o.lost = true }

func madeAgain(o *observed) {
	o.promise = mirror.WithMember(mirror.PromiseFor(o.root, o.class), here, nil)
	o.promise.Name = o.root.Spec.VolumeName
}

func notLabelled(o *observed) { o.promise.Labels = nil }

// keptByOther: the promise is fulfilled with another leaf PV.
func keptByOther(o *observed) {
	other := o.leaf.DeepCopy()
	other.Name, other.UID = "pv-2", "other-uid"
	o.promise = mirror.Fulfil(o.promise, other, deletes, here)
}

func TestDecidePromise(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		want     string
	}{
		"the member has just bound it":               {seen(promised), "patchLeaf"},
		"stamped and held":                           {seen(promised, stamped), "fulfil"},
		"not labelled yet":                           {seen(promised, stamped, notLabelled), "nothing"},
		"labelled by another member":                 {seen(promised, stamped, func(o *observed) { o.promise.Labels[v1alpha1.LabelClusterID] = "id39" }), "nothing"},
		"the promise is not seen yet":                {seen(promised, stamped, func(o *observed) { o.promise = nil }), "nothing"},
		"the promise has another volume (I3)":        {seen(promised, stamped, keptByOther), "surplus"},
		"placed elsewhere (I3)":                      {seen(promised, stamped, func(o *observed) { o.root.Annotations[v1alpha1.AnnotationPlacedIn] = "id39" }), "surplus"},
		"a promise that it uses again was lost":      {seen(promised, stamped, reused, lost), "nothing"},
		"the same, of another claim (I3)":            {seen(promised, stamped, reused), "surplus"},
		"the same, made again":                       {seen(promised, stamped, reused, madeAgain), "fulfil"},
		"bound to another's promise (I3)":            {seen(promised, stamped, func(o *observed) { o.root.Spec.VolumeName = "pvc-mock-other" }), "surplus"},
		"the leaf claim was lost before":             {seen(promised, stamped, noClaim), "fulfil"},
		"the leaf claim was lost, and it is to go":   {seen(promised, stamped, noClaim, func(o *observed) { o.leaf.Spec.PersistentVolumeReclaimPolicy = deletes }), "patchLeaf"},
		"the claim has gone, not stamped":            {seen(promised, rootGone), "nothing"},
		"the claim has gone, stamped":                {seen(promised, stamped, rootGone), "fulfil"},
		"the claim has gone, and so has the promise": {seen(promised, stamped, rootGone, func(o *observed) { o.promise = nil }), "orphan"},
		"the claim has gone, nobody had the promise": {seen(promised, stamped, rootGone, notLabelled), "orphan"},
		"fulfilled": {seen(promised, stamped, kept), "nothing"},
		"fulfilled, the volume has grown": {seen(promised, stamped, kept, func(o *observed) {
			o.leaf.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		}), "patchHost"},
		"fulfilled, somebody put it to Delete":          {seen(promised, stamped, kept, func(o *observed) { o.leaf.Spec.PersistentVolumeReclaimPolicy = deletes }), "patchLeaf"},
		"released: root_pv puts it to Delete":           {seen(promised, scratch, stamped, kept, releasing), "nothing"},
		"released, the leaf claim is gone":              {seen(promised, scratch, stamped, kept, releasing, noClaim), "nothing"},
		"released, and let go of with its cluster":      {seen(promised, scratch, stamped, kept, releasing, func(o *observed) { o.host.Finalizers = nil }), "patchHost"},
		"a mark on one that goes with its claim is not": {seen(promised, stamped, kept, releasing), "patchLeaf"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprintf("%T", decide(tc.observed))[len("leafpv."):]; got != tc.want {
				t.Errorf("decision is %s, want %s", got, tc.want)
			}
		})
	}
}

// What is written when a promise is fulfilled stands for the leaf PV from then on.
func TestFulfil(t *testing.T) {
	for name, o := range map[string]observed{"on claim deletion": seen(promised, stamped), "when unused": seen(promised, scratch, stamped)} {
		t.Run(name, func(t *testing.T) {
			d, ok := decide(o).(fulfil)
			if !ok {
				t.Fatalf("decision is %T", decide(o))
			}
			cluster, leaf, uid, ours := mirror.LeafVolumeOf(d.after)
			if !ours || cluster != here.ClusterID || leaf != o.leaf.Name || uid != o.leaf.UID {
				t.Errorf("stands for %q %q %q %t", cluster, leaf, uid, ours)
			}
			o.host, o.promise = d.after, nil
			if _, settled := decide(o).(nothing); !settled {
				t.Errorf("decision is %T then", decide(o))
			}
		})
	}
}
