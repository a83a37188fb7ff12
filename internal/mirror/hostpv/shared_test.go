package hostpv

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func modes(modes ...corev1.PersistentVolumeAccessMode) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes = modes }
}

// attributed sets one of the CSI attributes of a leaf PV.
func attributed(value string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeAttributes = map[string]string{"share": value} }
}

// sharableLeaf returns a leaf PV that may be shared.
func sharableLeaf(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	leaf := leafVolume()
	modes(corev1.ReadWriteMany, corev1.ReadOnlyMany)(leaf)
	for _, f := range change {
		f(leaf)
	}
	return leaf
}

func hostOf(leaf *corev1.PersistentVolume) *corev1.PersistentVolume {
	return TranslateVolume(leaf, mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{}), corev1.PersistentVolumeReclaimDelete, mirrortest.Member)
}

func TestShare(t *testing.T) {
	for name, tc := range map[string]struct {
		leaf    *corev1.PersistentVolume
		backend string
		shared  bool
	}{
		"ReadWriteMany":                           {sharableLeaf(), "filer", true},
		"ReadOnlyMany":                            {sharableLeaf(modes(corev1.ReadOnlyMany)), "filer", true},
		"no attributes":                           {sharableLeaf(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeAttributes = nil }), "filer", true},
		"attributes with printable characters":    {sharableLeaf(attributed("/exports/größe & <more>")), "filer", true},
		"a control character, which JSON escapes": {sharableLeaf(attributed("/a\x1bb\n")), "filer", true},
		"no backend":                              {sharableLeaf(), "", false},
		"ReadWriteOnce":                           {sharableLeaf(modes(corev1.ReadWriteOnce)), "filer", false},
		"ReadWriteOncePod":                        {sharableLeaf(modes(corev1.ReadWriteOncePod)), "filer", false},
		"ReadWriteMany and ReadWriteOnce":         {sharableLeaf(modes(corev1.ReadWriteMany, corev1.ReadWriteOnce)), "filer", false},
		"no access modes":                         {sharableLeaf(modes()), "filer", false},
		"the attributes are at the limit":         {sharableLeaf(attributed(strings.Repeat("x", sharedAttributesLimit-len(`{"share":""}`)))), "filer", true},
		"the attributes exceed the limit":         {sharableLeaf(attributed(strings.Repeat("x", sharedAttributesLimit-len(`{"share":""}`)+1))), "filer", false},
		"a character that reorders text":          {sharableLeaf(attributed("/a\u202eb")), "filer", false},
		"a character that changes no width":       {sharableLeaf(attributed("/a\u200bb")), "filer", false},
		"a handle with a control character":       {sharableLeaf(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "vol\x1b-1" }), "filer", false},
		"a handle that exceeds the limit":         {sharableLeaf(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = strings.Repeat("v", attributeLimit+1) }), "filer", false},
		"an attribute that only a kubelet sets": {sharableLeaf(func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.VolumeAttributes = map[string]string{"CSI.storage.k8s.io/Ephemeral": "true"}
		}), "filer", false},
		"a volume without a CSI driver": {sharableLeaf(func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}
		}), "filer", false},
	} {
		t.Run(name, func(t *testing.T) {
			host := hostOf(tc.leaf)
			before := host.DeepCopy()
			if shared := ShareVolume(host, tc.leaf, tc.backend); shared != tc.shared {
				t.Fatalf("shared: %t, want %t", shared, tc.shared)
			}
			if !tc.shared {
				if diff := cmp.Diff(before, host); diff != "" {
					t.Errorf("Share changed a host PV that it refused (-want +got):\n%s", diff)
				}
				if backend := BackendOfVolume(host); backend != "" {
					t.Errorf("the backend is %q", backend)
				}
				return
			}
			if backend := BackendOfVolume(host); backend != tc.backend {
				t.Errorf("the backend is %q, want %q", backend, tc.backend)
			}
			from := tc.leaf.Spec.CSI
			want := &corev1.CSIPersistentVolumeSource{Driver: from.Driver, VolumeHandle: from.VolumeHandle, ReadOnly: from.ReadOnly, FSType: from.FSType, VolumeAttributes: from.VolumeAttributes}
			got, ok := SharedVolumeSource(host)
			if diff := cmp.Diff(want, got); !ok || diff != "" {
				t.Errorf("complete: %t, source (-want +got):\n%s", ok, diff)
			}
			if cluster, leaf, uid, ours := LeafOfHostVolume(host); !ours || cluster != mirrortest.Member.ClusterID || leaf != "pvc-1" || uid != types.UID("leaf-uid") {
				t.Errorf("LeafOf returned %q, %q, %q, %t", cluster, leaf, uid, ours)
			}
		})
	}
}

// A host PV that somebody has edited is not shared. If its node affinity has changed, it represents no
// leaf PV either.
func TestEditedSharedVolume(t *testing.T) {
	terms := func(change func(*corev1.NodeSelector)) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { change(pv.Spec.NodeAffinity.Required) }
	}
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolume)
		ours   bool
	}{
		"no node affinity": {func(pv *corev1.PersistentVolume) { pv.Spec.NodeAffinity = nil }, false},
		"only the member":  {terms(func(s *corev1.NodeSelector) { s.NodeSelectorTerms = s.NodeSelectorTerms[:1] }), true},
		"only the backend": {terms(func(s *corev1.NodeSelector) { s.NodeSelectorTerms = s.NodeSelectorTerms[1:] }), false},
		"a third term": {terms(func(s *corev1.NodeSelector) {
			s.NodeSelectorTerms = append(s.NodeSelectorTerms, mirror.NodeSelectorTermForLabel("zone", "a"))
		}), false},
		"another member": {terms(func(s *corev1.NodeSelector) {
			s.NodeSelectorTerms[0] = mirror.NodeSelectorTermForLabel(v1alpha1.LabelClusterID, "other")
		}), false},
		"the wrong order": {terms(func(s *corev1.NodeSelector) {
			s.NodeSelectorTerms[0], s.NodeSelectorTerms[1] = s.NodeSelectorTerms[1], s.NodeSelectorTerms[0]
		}), false},
		"another label": {terms(func(s *corev1.NodeSelector) { s.NodeSelectorTerms[1] = mirror.NodeSelectorTermForLabel("zone", "") }), false},
		"a label's value": {terms(func(s *corev1.NodeSelector) {
			s.NodeSelectorTerms[1] = mirror.NodeSelectorTermForLabel(v1alpha1.LabelBackendPrefix+"filer", "x")
		}), false},
		"another operator": {terms(func(s *corev1.NodeSelector) {
			s.NodeSelectorTerms[1].MatchExpressions[0].Operator = corev1.NodeSelectorOpNotIn
		}), false},
		"two expressions": {terms(func(s *corev1.NodeSelector) {
			s.NodeSelectorTerms[1].MatchExpressions = append(s.NodeSelectorTerms[1].MatchExpressions, s.NodeSelectorTerms[0].MatchExpressions...)
		}), false},
		"another driver": {func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "disk.example.com" }, false},
		"no attributes":  {func(pv *corev1.PersistentVolume) { delete(pv.Spec.CSI.VolumeAttributes, v1alpha1.AttributeShared) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := sharableLeaf()
			host := hostOf(leaf)
			if !ShareVolume(host, leaf, "filer") {
				t.Fatal("the volume cannot be shared")
			}
			tc.change(host)
			if backend := BackendOfVolume(host); backend != "" {
				t.Errorf("the backend is %q", backend)
			}
			if source, ok := SharedVolumeSource(host); ok {
				t.Errorf("the source is %v", source)
			}
			if _, _, _, ours := LeafOfHostVolume(host); ours != tc.ours {
				t.Errorf("represents a leaf PV: %t, want %t", ours, tc.ours)
			}
		})
	}
}

func TestInvalidSharedSource(t *testing.T) {
	for name, change := range map[string]func(map[string]string){
		"the attributes are not JSON": func(a map[string]string) { a[v1alpha1.AttributeShared] = "{" },
		"no driver":                   func(a map[string]string) { delete(a, v1alpha1.AttributeDriver) },
		"no handle":                   func(a map[string]string) { delete(a, v1alpha1.AttributeHandle) },
	} {
		t.Run(name, func(t *testing.T) {
			leaf := sharableLeaf()
			host := hostOf(leaf)
			if !ShareVolume(host, leaf, "filer") {
				t.Fatal("the volume cannot be shared")
			}
			change(host.Spec.CSI.VolumeAttributes)
			if source, ok := SharedVolumeSource(host); ok {
				t.Errorf("the source is %v", source)
			}
		})
	}
}

func TestCopiedIn(t *testing.T) {
	host := hostOf(sharableLeaf())
	two := VolumeWithCopyIn(VolumeWithCopyIn(host, "id39"), "id40")
	if diff := cmp.Diff([]string{"id39", "id40"}, MembersWithCopies(two)); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"id40"}, MembersWithCopies(VolumeWithoutCopyIn(two, "id39"))); diff != "" {
		t.Errorf("clusters without the first one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(host, VolumeWithoutCopyIn(VolumeWithCopyIn(host, "id39"), "id39")); diff != "" {
		t.Errorf("the host PV after both changes (-want +got):\n%s", diff)
	}
	if got := MembersWithCopies(host); len(got) > 0 {
		t.Errorf("a host PV without records names %v", got)
	}
}
