package hostpv

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func leafVolume() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pvc-1", UID: "leaf-uid",
			Labels:      map[string]string{"topology.kubernetes.io/zone": "a", "xylem.io/host": mirrortest.HostID},
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com", "note": "the member's"},
			Finalizers:  []string{"external-provisioner.volume.kubernetes.io/finalizer"},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      mirrortest.StorageAmount("10Gi"),
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:                      &corev1.ObjectReference{Namespace: "shop", Name: "disk", UID: "leaf-claim-uid"},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              "gp3",
			MountOptions:                  []string{"noatime"},
			VolumeMode:                    mirrortest.PointerTo(corev1.PersistentVolumeFilesystem),
			NodeAffinity:                  &corev1.VolumeNodeAffinity{Required: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("topology.kubernetes.io/zone", "a")))},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "ebs.csi.aws.com", VolumeHandle: "vol-1", FSType: "ext4",
				VolumeAttributes:   map[string]string{"secret": "path"},
				NodeStageSecretRef: &corev1.SecretReference{Namespace: "kube-system", Name: "key"},
			}},
		},
	}
}

func mirrored() *corev1.PersistentVolume {
	root := mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{StorageClassName: mirrortest.PointerTo("ssd"), VolumeAttributesClassName: mirrortest.PointerTo("gold")})
	return TranslateVolume(leafVolume(), root, corev1.PersistentVolumeReclaimDelete, mirrortest.Member)
}

func TestHostVolume(t *testing.T) {
	want := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-1",
			Labels:      map[string]string{"xylem.io/cluster": "cluster38", "xylem.io/cluster-id": "member-id"},
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "csi.xylem.io"},
			Finalizers:  []string{"xylem.io/leaf-volume"},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      mirrortest.StorageAmount("10Gi"),
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "disk", UID: "claim-uid"},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              "ssd",
			VolumeMode:                    mirrortest.PointerTo(corev1.PersistentVolumeFilesystem),
			VolumeAttributesClassName:     mirrortest.PointerTo("gold"),
			NodeAffinity:                  &corev1.VolumeNodeAffinity{Required: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("xylem.io/cluster-id", "member-id")))},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "csi.xylem.io", VolumeHandle: "member-id/pvc-1", FSType: "ext4",
				VolumeAttributes: map[string]string{
					"xylem.io/driver": "ebs.csi.aws.com", "xylem.io/handle": "vol-1", "xylem.io/leaf-uid": "leaf-uid",
				},
			}},
		},
	}
	if diff := cmp.Diff(want, mirrored()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHostVolumeOfAClaimWithoutClass(t *testing.T) {
	host := TranslateVolume(leafVolume(), mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{}), corev1.PersistentVolumeReclaimRetain, mirrortest.Member)
	if host.Spec.StorageClassName != "" || host.Spec.VolumeAttributesClassName != nil {
		t.Errorf("classes are %q and %v, want none", host.Spec.StorageClassName, host.Spec.VolumeAttributesClassName)
	}
}

func TestLeafVolumeOf(t *testing.T) {
	cases := map[string]struct {
		change func(*corev1.PersistentVolume)
		ok     bool
	}{
		"ours":                          {func(*corev1.PersistentVolume) {}, true},
		"Xylem's driver, another name":  {func(v *corev1.PersistentVolume) { v.Name = "pvc-1-0123" }, true},
		"a renamed registration":        {func(v *corev1.PersistentVolume) { v.Labels["xylem.io/cluster"] = "other" }, true},
		"another driver":                {func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "ebs.csi.aws.com" }, false},
		"not a CSI volume":              {func(v *corev1.PersistentVolume) { v.Spec.CSI = nil }, false},
		"a handle without a cluster ID": {func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "/pvc-1" }, false},
		"a handle without a name":       {func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "member-id/" }, false},
		"an empty handle":               {func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "pvc-1" }, false},
		"a handle with a path":          {func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "member-id/../pvc-1" }, false},
		"another member's handle":       {func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "other/pvc-1" }, false},
		"another member's label":        {func(v *corev1.PersistentVolume) { v.Labels["xylem.io/cluster-id"] = "other" }, false},
		"no label":                      {func(v *corev1.PersistentVolume) { v.Labels = nil }, false},
		"no leaf UID":                   {func(v *corev1.PersistentVolume) { delete(v.Spec.CSI.VolumeAttributes, "xylem.io/leaf-uid") }, false},
		"no affinity":                   {func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity = nil }, false},
		"another affinity": {func(v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0] = "other"
		}, false},
		"affinity to two members": {func(v *corev1.PersistentVolume) {
			e := &v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
			e.Values = append(e.Values, "other")
		}, false},
		"affinity to another key": {func(v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key = "xylem.io/cluster"
		}, false},
		"two alternative affinities": {func(v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity.Required.NodeSelectorTerms = append(v.Spec.NodeAffinity.Required.NodeSelectorTerms, mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("a", "b")))
		}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			host := mirrored()
			c.change(host)
			clusterID, leafName, leafUID, ok := LeafOfHostVolume(host)
			if ok != c.ok {
				t.Fatalf("LeafOf returned %v, want %v", ok, c.ok)
			}
			want := [3]string{}
			if c.ok {
				want = [3]string{"member-id", "pvc-1", "leaf-uid"}
			}
			if diff := cmp.Diff(want, [3]string{clusterID, leafName, string(leafUID)}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The host PV names only Xylem's driver, regardless of the leaf PV's volume source.
func TestHostVolumeHasNoSource(t *testing.T) {
	for _, f := range fields.JSONFieldsOf(reflect.TypeFor[corev1.PersistentVolumeSource]()) {
		t.Run(f.Name, func(t *testing.T) {
			leaf := leafVolume()
			leaf.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{}
			(&mirrortest.Filler{}).FillValue(reflect.ValueOf(&leaf.Spec.PersistentVolumeSource).Elem().FieldByIndex(f.Index))
			host := TranslateVolume(leaf, mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{}), corev1.PersistentVolumeReclaimRetain, mirrortest.Member)
			want := corev1.PersistentVolumeSource{CSI: host.Spec.CSI}
			if diff := cmp.Diff(want, host.Spec.PersistentVolumeSource); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if host.Spec.CSI.Driver != "csi.xylem.io" || host.Spec.CSI.VolumeAttributes["xylem.io/driver"] == "" {
				t.Errorf("the CSI source is %+v, want Xylem's driver and the leaf's driver as an attribute", host.Spec.CSI)
			}
		})
	}
}

func TestVolumeDrift(t *testing.T) {
	cases := map[string]struct {
		leaf func(*corev1.PersistentVolume)
		host func(*corev1.PersistentVolume)
		// attributes is the host's name for the leaf's VolumeAttributesClass.
		attributes string
		want       VolumeDrift
	}{
		"none":                                  {},
		"grown":                                 {leaf: func(v *corev1.PersistentVolume) { v.Spec.Capacity = mirrortest.StorageAmount("20Gi") }, want: VolumeDrift{Capacity: mirrortest.StorageAmount("20Gi")}},
		"the same quantity in another notation": {leaf: func(v *corev1.PersistentVolume) { v.Spec.Capacity = mirrortest.StorageAmount("10240Mi") }},
		"a leaf without capacity":               {leaf: func(v *corev1.PersistentVolume) { v.Spec.Capacity = nil }},
		"another attributes class":              {attributes: "silver", want: VolumeDrift{VolumeAttributesClassName: mirrortest.PointerTo("silver")}},
		"the same attributes class":             {attributes: "silver", host: func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = mirrortest.PointerTo("silver") }},
		"an attributes class without a known name in the host": {
			leaf: func(v *corev1.PersistentVolume) {
				v.Spec.VolumeAttributesClassName = mirrortest.PointerTo("member-silver")
			},
		},
		"another attributes class, but the host PV is not bound yet": {
			attributes: "silver", host: func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumePending },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			host, leaf := mirrored(), leafVolume()
			host.Status.Phase = corev1.VolumeBound
			if c.leaf != nil {
				c.leaf(leaf)
			}
			if c.host != nil {
				c.host(host)
			}
			got := VolumeDriftOf(host, leaf, c.attributes)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got.IsEmpty() != reflect.DeepEqual(got, VolumeDrift{}) {
				t.Errorf("Empty returned %v for change %+v", got.IsEmpty(), got)
			}
		})
	}
}

func FuzzHostVolumeName(f *testing.F) {
	long := strings.Repeat("a", 253)
	f.Add("pvc-1", "a", "pvc-1", "b")
	f.Add("pvc-1", "a", "pvc-2", "a")
	f.Add(long, "a", long[:252], "a")
	f.Add(long, "a", long, "b")
	f.Add(strings.Repeat("a", 235)+"."+strings.Repeat("b", 17), "a", strings.Repeat("a", 235)+"-"+strings.Repeat("b", 17), "a")
	f.Fuzz(func(t *testing.T, name1, cluster1, name2, cluster2 string) {
		for _, name := range []string{name1, name2} {
			if len(validation.IsDNS1123Subdomain(name)) > 0 {
				t.Skip("not a valid volume name")
			}
		}
		if HostVolumeName(name1, cluster1, false) != name1 {
			t.Error("the name changed without a collision")
		}
		host1, host2 := HostVolumeName(name1, cluster1, true), HostVolumeName(name2, cluster2, true)
		if problems := validation.IsDNS1123Subdomain(host1); len(problems) > 0 {
			t.Errorf("%q is not a valid name: %v", host1, problems)
		}
		same := name1 == name2 && cluster1 == cluster2
		if (host1 == host2) != same {
			t.Errorf("%s of %s and %s of %s both have the name %s", name1, cluster1, name2, cluster2, host1)
		}
		if host1 == name1 {
			t.Error("the name did not change on a collision")
		}
	})
}

func FuzzHostVolumeRoundTrip(f *testing.F) {
	f.Add("pvc-1", "member-id", "leaf-uid")
	f.Fuzz(func(t *testing.T, name, clusterID, uid string) {
		if len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsValidLabelValue(clusterID)) > 0 || clusterID == "" || uid == "" {
			t.Skip("not valid names or IDs")
		}
		leaf, m := leafVolume(), mirrortest.Member
		leaf.Name, leaf.UID, m.ClusterID = name, types.UID(uid), clusterID
		host := TranslateVolume(leaf, mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{}), corev1.PersistentVolumeReclaimRetain, m)
		host.Name = HostVolumeName(name, clusterID, true)
		gotCluster, gotName, gotUID, ok := LeafOfHostVolume(host)
		if !ok || gotCluster != clusterID || gotName != name || string(gotUID) != uid {
			t.Errorf("LeafOf returned %q, %q, %q, %v; want %q, %q, %q, true", gotCluster, gotName, gotUID, ok, clusterID, name, uid)
		}
	})
}

func TestPolicy(t *testing.T) {
	const retain, del, recycle = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle
	cases := map[string]struct {
		host       *storagev1.StorageClass
		leaf, want corev1.PersistentVolumeReclaimPolicy
	}{
		"both policies are Delete":              {&storagev1.StorageClass{ReclaimPolicy: mirrortest.PointerTo(del)}, del, del},
		"the host's class has no policy":        {&storagev1.StorageClass{}, del, del},
		"the host retains":                      {&storagev1.StorageClass{ReclaimPolicy: mirrortest.PointerTo(retain)}, del, retain},
		"the member retains":                    {&storagev1.StorageClass{ReclaimPolicy: mirrortest.PointerTo(del)}, retain, retain},
		"the host's class does not exist":       {nil, del, retain},
		"the member recycles":                   {&storagev1.StorageClass{ReclaimPolicy: mirrortest.PointerTo(del)}, recycle, retain},
		"the host recycles":                     {&storagev1.StorageClass{ReclaimPolicy: mirrortest.PointerTo(recycle)}, del, retain},
		"the leaf's original policy is unknown": {&storagev1.StorageClass{ReclaimPolicy: mirrortest.PointerTo(del)}, "", retain},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := HostReclaimPolicy(c.host, c.leaf); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A capacity that is out of range is neither compared nor written to the host, because that would
// take minutes.
func TestCapacityOutOfRange(t *testing.T) {
	root, leaf := mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{}), leafVolume()
	host := TranslateVolume(leaf, root, corev1.PersistentVolumeReclaimRetain, mirrortest.Member)
	leaf.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1e2000000001")}
	if change := VolumeDriftOf(host, leaf, ""); !change.IsEmpty() {
		t.Errorf("change is %+v, want none", change)
	}
	if again := TranslateVolume(leaf, root, corev1.PersistentVolumeReclaimRetain, mirrortest.Member); again.Spec.Capacity != nil {
		t.Error("the host PV has a capacity, want none")
	}
}

func TestRecordProvisioned(t *testing.T) {
	created := metav1.NewTime(time.Unix(1000, 0))
	for name, tc := range map[string]struct {
		change func(leaf *corev1.PersistentVolume, leafClaim *corev1.PersistentVolumeClaim)
		want   bool
	}{
		"provisioned for the leaf claim": {func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {}, true},
		"an Available volume, bound by the member": {func(leaf *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
			leaf.Annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
		}, false},
		"older than the leaf claim": {func(leaf *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
			leaf.CreationTimestamp = metav1.NewTime(created.Add(-time.Second))
		}, false},
		"not created by a provisioner": {func(leaf *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
			delete(leaf.Annotations, annotationProvisionedBy)
		}, false},
		"of another leaf claim": {func(_ *corev1.PersistentVolume, leafClaim *corev1.PersistentVolumeClaim) { leafClaim.UID = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{})
			leaf, leafClaim := leafVolume(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "leaf-claim-uid", CreationTimestamp: created}}
			leaf.CreationTimestamp = created
			tc.change(leaf, leafClaim)
			host := TranslateVolume(leaf, root, corev1.PersistentVolumeReclaimDelete, mirrortest.Member)
			RecordProvisioned(host, leaf, leafClaim)
			if got := WasProvisionedFor(host, root); got != tc.want {
				t.Errorf("ProvisionedFor returned %t, want %t", got, tc.want)
			}
			reused := root.DeepCopy()
			reused.UID, host.Spec.ClaimRef.UID = "reused", "reused"
			if WasProvisionedFor(host, reused) {
				t.Error("ProvisionedFor accepts another claim that uses the volume later")
			}
		})
	}
}
