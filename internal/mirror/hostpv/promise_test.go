package hostpv

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

var (
	promisor = &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: v1alpha1.ProvisionerName,
		Parameters: map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterMemberClass: "gp3", "fsType": "xfs"},
	}
	promisee = &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u-1"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: mirrortest.PointerTo("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, VolumeMode: mirrortest.PointerTo(corev1.PersistentVolumeBlock),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	promiseMember = mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"}
	promiseLeaf   = &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}},
		},
	}
)

func whenUnused() *storagev1.StorageClass {
	class := promisor.DeepCopy()
	class.Parameters[v1alpha1.ParameterRelease] = v1alpha1.ReleaseWhenUnused
	return class
}

func TestPromiseFor(t *testing.T) {
	want := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-mock-u-1",
			Annotations: map[string]string{"virtual-kubelet.io/mock-pv": "true", "pv.kubernetes.io/provisioned-by": "csi.xylem.io"},
			Finalizers:  []string{"xylem.io/leaf-volume"},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, VolumeMode: mirrortest.PointerTo(corev1.PersistentVolumeBlock),
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: "u-1"},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, StorageClassName: "fast",
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "mock.csi.virtual-kubelet.io", VolumeHandle: "mock-vol-u-1",
				VolumeAttributes: map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterMemberClass: "gp3"},
			}},
		},
	}
	if diff := cmp.Diff(want, NewPromiseFor(promisee, promisor)); diff != "" {
		t.Errorf("promise (-want +got):\n%s", diff)
	}

	retaining := promisor.DeepCopy()
	retaining.ReclaimPolicy = mirrortest.PointerTo(corev1.PersistentVolumeReclaimRetain)
	if got := NewPromiseFor(promisee, retaining).Spec.PersistentVolumeReclaimPolicy; got != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("the class has policy Retain, but the promise has %s", got)
	}
	held := NewPromiseFor(promisee, whenUnused()).Spec.NodeAffinity
	if !mirror.IsNodeAffinityToLabel(held, v1alpha1.LabelVirtualNode, "true") {
		t.Errorf("node affinity is %v, want affinity to all virtual nodes", held)
	}
}

func ofClaim(c *corev1.PersistentVolumeClaim) {
	c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
}

// From its creation, the promise for a claim with a data source selects the member that has the
// source. Fulfilling the promise does not change the member.
func TestPromiseWithSource(t *testing.T) {
	claim := promisee.DeepCopy()
	ofClaim(claim)
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, v1alpha1.AnnotationSource, promiseMember.ClusterID+"/golden-uid")
	promise := NewPromiseFor(claim, promisor)
	if !mirror.IsNodeAffinityToMember(promise.Spec.NodeAffinity, promiseMember.ClusterID) || !IsUnassignedPromise(promise) {
		t.Errorf("node affinity is %v, unused %t; want affinity to the source's member, and unused", promise.Spec.NodeAffinity, IsUnassignedPromise(promise))
	}
	if held := NewPromiseFor(promisee, promisor).Spec.NodeAffinity; held != nil {
		t.Errorf("a promise without a source has node affinity %v, want none", held)
	}
}

func TestPromiseRefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		class  *storagev1.StorageClass
		reason string
	}{
		"plain":                {change: func(*corev1.PersistentVolumeClaim) {}},
		"bound to its promise": {change: func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pvc-mock-u-1" }},
		"names a volume":       {change: func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }, reason: v1alpha1.ReasonVolumeNameUnsupported},
		"lost another claim's promise": {change: func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeName, c.Status.Phase = "pvc-mock-u-2", corev1.ClaimLost
		}},
		"lost a volume": {change: func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeName, c.Status.Phase = "v", corev1.ClaimLost
		}, reason: v1alpha1.ReasonVolumeNameUnsupported},
		"names another claim's promise": {change: func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pvc-mock-u-2" }, reason: v1alpha1.ReasonVolumeNameUnsupported},
		"selector":                      {change: func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }, reason: v1alpha1.ReasonSelectorUnsupported},
		"another claim as its source":   {change: ofClaim},
		"another claim as its source, released with its last Pod": {change: ofClaim, class: whenUnused(), reason: v1alpha1.ReasonDataSourceUnsupported},
		"a populator's source": {change: func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "Image"}
		}, reason: v1alpha1.ReasonDataSourceUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			claim := promisee.DeepCopy()
			tc.change(claim)
			got := ""
			if refusal := PromiseRefusal(claim, tc.class); refusal != nil {
				got = refusal.Reason
			}
			if got != tc.reason {
				t.Errorf("reason is %q, want %q", got, tc.reason)
			}
		})
	}
}

// The predicates are right for a promise in each state, and each transition changes only what it
// must.
func TestLifeOfAPromise(t *testing.T) {
	for name, class := range map[string]*storagev1.StorageClass{"on claim deletion": promisor, "when unused": whenUnused()} {
		t.Run(name, func(t *testing.T) {
			made := NewPromiseFor(promisee, class)
			if !IsPromise(made) || !IsUnassignedPromise(made) || !IsUnfulfilledPromise(made) || IsUnfulfilledPromiseIn(made, promiseMember.ClusterID) {
				t.Error("a new promise is not reported as unused")
			}
			if _, _, _, ours := LeafOfHostVolume(made); ours {
				t.Error("a new promise represents a leaf PV")
			}
			placed := PromiseWithMember(made, promiseMember, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "p-1"}})
			if IsUnassignedPromise(placed) || !IsUnfulfilledPromiseIn(placed, promiseMember.ClusterID) || IsUnfulfilledPromiseIn(placed, "id39") || placed.Annotations[v1alpha1.AnnotationConsumer] != "shop/app/p-1" {
				t.Errorf("a placed promise is not assigned to this member: %v %v", placed.Labels, placed.Annotations)
			}
			if diff := cmp.Diff(made, PromiseWithoutMember(placed), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("a released promise differs from a new one (-new +got):\n%s", diff)
			}

			full := FulfillPromise(placed, promiseLeaf, corev1.PersistentVolumeReclaimDelete, promiseMember)
			cluster, leaf, uid, ours := LeafOfHostVolume(full)
			if !ours || cluster != "id38" || leaf != "pv-1" || uid != "leaf-uid" || IsUnfulfilledPromise(full) {
				t.Errorf("LeafOf returned %q, %q, %q, %t for a fulfilled promise; want its leaf PV", cluster, leaf, uid, ours)
			}
			if got := full.Spec.Capacity.Storage().String(); got != "2Gi" {
				t.Errorf("capacity is %s, want 2Gi", got)
			}
			if full.Annotations[v1alpha1.AttributeDriver] != "disk.example.com" || full.Annotations[v1alpha1.AttributeHandle] != "d-1" {
				t.Errorf("the leaf's driver or handle is not recorded: %v", full.Annotations)
			}
			if pinned := mirror.IsNodeAffinityToMember(full.Spec.NodeAffinity, "id38"); pinned == ReleasesWhenUnused(full) {
				t.Errorf("the node affinity selects the member: %t, want %t", pinned, !pinned)
			}
			if diff := cmp.Diff(made.Spec.PersistentVolumeSource, full.Spec.PersistentVolumeSource); diff != "" {
				t.Errorf("the source, which is immutable, has changed:\n%s", diff)
			}

			if class == promisor {
				return
			}
			full.Annotations[v1alpha1.AnnotationReleasing] = "leaf-uid"
			if !IsReleasingDisk(full) {
				t.Error("the promise is not being released")
			}
			again := UnfulfillPromise(full, promisee)
			if diff := cmp.Diff(made, again, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("an unfulfilled promise differs from a new one (-new +got):\n%s", diff)
			}
			full.Finalizers = nil
			if diff := cmp.Diff(made.Finalizers, UnfulfillPromise(full, nil).Finalizers); diff != "" {
				t.Errorf("the finalizer of a released promise was not restored (-want +got):\n%s", diff)
			}
			full.DeletionTimestamp = &metav1.Time{}
			if got := UnfulfillPromise(full, nil).Finalizers; len(got) != 0 {
				t.Errorf("a promise that is being deleted got finalizers %v, want none", got)
			}
			if !IsUnassignedPromise(again) || again.Annotations[v1alpha1.AnnotationMockPV] != "true" {
				t.Errorf("labels %v, annotations %v; want those of an unused mock PV", again.Labels, again.Annotations)
			}
		})
	}
}

// If an admin releases a promise from a member, another member may fulfill it. Xylem does not
// automatically assign it to the first member again.
func TestReleasePromise(t *testing.T) {
	boundTo := func(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
		pv.UID, pv.Status.Phase = "pv-uid", corev1.VolumeBound
		return pv
	}
	placed := func(class *storagev1.StorageClass) *corev1.PersistentVolume {
		return boundTo(PromiseWithMember(NewPromiseFor(promisee, class), promiseMember, &corev1.Pod{}))
	}
	fulfilled := func(class *storagev1.StorageClass) *corev1.PersistentVolume {
		return boundTo(FulfillPromise(placed(class), promiseLeaf, corev1.PersistentVolumeReclaimDelete, promiseMember))
	}
	with := func(pv *corev1.PersistentVolume, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		change(pv)
		return pv
	}
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		want bool
	}{
		"not assigned to a member":                     {boundTo(NewPromiseFor(promisee, whenUnused())), true},
		"placed":                                       {placed(promisor), true},
		"fulfilled, released when unused":              {fulfilled(whenUnused()), true},
		"fulfilled, released with its claim":           {fulfilled(promisor), false},
		"its claim does not exist":                     {with(fulfilled(whenUnused()), func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }), false},
		"being deleted":                                {with(fulfilled(whenUnused()), func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &metav1.Time{} }), false},
		"an incomplete record":                         {with(fulfilled(whenUnused()), func(pv *corev1.PersistentVolume) { delete(pv.Annotations, v1alpha1.AttributeLeafUID) }), false},
		"the member has already removed its finalizer": {with(fulfilled(whenUnused()), func(pv *corev1.PersistentVolume) { pv.Finalizers = nil }), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsMovablePromise(tc.pv); got != tc.want {
				t.Fatalf("movable: %t, want %t", got, tc.want)
			}
			if !tc.want {
				return
			}
			want := boundTo(NewPromiseFor(promisee, ClassOfPromise(tc.pv)))
			want.Spec.StorageClassName, want.Annotations[v1alpha1.AnnotationAbandon] = promisor.Name, promiseMember.ClusterID
			got := ReleasePromise(tc.pv, promisee, promiseMember.ClusterID)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("released (-want +got):\n%s", diff)
			}
			if !IsUnassignedPromise(got) || !IsPromiseReleasedFrom(got, promiseMember.ClusterID) || IsPromiseReleasedFrom(got, "id39") || IsPromiseReleasedFrom(tc.pv, promiseMember.ClusterID) {
				t.Error("PromiseReleasedBy does not distinguish promises")
			}
		})
	}
}

func TestFulfilRetains(t *testing.T) {
	placed := PromiseWithMember(NewPromiseFor(promisee, promisor), promiseMember, nil)
	for policy, want := range map[corev1.PersistentVolumeReclaimPolicy]corev1.PersistentVolumeReclaimPolicy{
		corev1.PersistentVolumeReclaimDelete: corev1.PersistentVolumeReclaimDelete,
		corev1.PersistentVolumeReclaimRetain: corev1.PersistentVolumeReclaimRetain,
		"":                                   corev1.PersistentVolumeReclaimRetain,
	} {
		if got := FulfillPromise(placed, promiseLeaf, policy, promiseMember).Spec.PersistentVolumeReclaimPolicy; got != want {
			t.Errorf("member's policy %q: %s, want %s", policy, got, want)
		}
	}
}

// A PV with an inconsistent record represents nothing, and is not an unfulfilled promise either.
func TestPromiseTampered(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"no label":                         func(pv *corev1.PersistentVolume) { pv.Labels = nil },
		"another member's label":           func(pv *corev1.PersistentVolume) { pv.Labels[v1alpha1.LabelClusterID] = "id39" },
		"no UID":                           func(pv *corev1.PersistentVolume) { delete(pv.Annotations, v1alpha1.AttributeLeafUID) },
		"no volume":                        func(pv *corev1.PersistentVolume) { delete(pv.Annotations, v1alpha1.AnnotationVolume) },
		"no cluster":                       func(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationVolume] = "pv-1" },
		"no node affinity":                 func(pv *corev1.PersistentVolume) { pv.Spec.NodeAffinity = nil },
		"node affinity to another member":  func(pv *corev1.PersistentVolume) { pv.Spec.NodeAffinity = mirror.NodeAffinityToMember("id39") },
		"an invalid PV name":               func(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationVolume] = "id38/a/b" },
		"not marked as mock":               func(pv *corev1.PersistentVolume) { delete(pv.Annotations, v1alpha1.AnnotationMockPV) },
		"a mock that Xylem did not create": func(pv *corev1.PersistentVolume) { delete(pv.Annotations, annotationProvisionedBy) },
	} {
		t.Run(name, func(t *testing.T) {
			pv := FulfillPromise(PromiseWithMember(NewPromiseFor(promisee, promisor), promiseMember, nil), promiseLeaf, corev1.PersistentVolumeReclaimDelete, promiseMember)
			change(pv)
			if _, leaf, _, ours := LeafOfHostVolume(pv); ours || leaf != "" {
				t.Errorf("LeafOf returned %q, want none", leaf)
			}
			if IsUnfulfilledPromise(pv) {
				t.Error("IsUnfulfilled returned true")
			}
		})
	}
}

func TestPromiseClass(t *testing.T) {
	pv := NewPromiseFor(promisee, whenUnused())
	class, err := ReadClassParameters(ClassOfPromise(pv))
	if err != nil {
		t.Fatal(err)
	}
	if class.Release != v1alpha1.ReleaseWhenUnused || class.ReleaseGrace != DefaultReleaseGrace ||
		ClassOfPromise(pv).Parameters[v1alpha1.ParameterMemberClass] != "gp3" || !IsPromiseClass(ClassOfPromise(pv)) {
		t.Errorf("the promise's class is %+v, want the one that it was created with", class)
	}
	if IsPromiseName("pvc-"+string(types.UID("u-1"))) || !IsPromiseName(pv.Name) {
		t.Error("NamesPromise does not distinguish names of promises")
	}
}
