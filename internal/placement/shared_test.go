package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const nfs = "nfs.example.com"

// sharing returns a member that shares the given backends. Its cluster ID is id38.
func sharing(shared ...v1alpha1.SharedBackend) Member {
	m := ruled(v1alpha1.StorageSpec{Shared: shared, Classes: []v1alpha1.ClassMapping{{Host: "shared", Member: "nfs"}}})
	m.ClusterID = "id38"
	return m
}

// sharedIn returns the host PV of a volume of another member, on backend filer.
func sharedIn(clusterID string) *corev1.PersistentVolume {
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "leaf-uid"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: nfs, VolumeHandle: "export-1"}},
	}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "claim-uid"}}
	pv := hostpv.TranslateVolume(leaf, claim, corev1.PersistentVolumeReclaimDelete, mirror.Member{Registration: "owner", ClusterID: clusterID})
	if !hostpv.ShareVolume(pv, leaf, "filer") {
		panic("the volume cannot be shared")
	}
	return pv
}

func TestBackendFor(t *testing.T) {
	filer := v1alpha1.SharedBackend{Name: "filer", Driver: nfs, Classes: []string{"nfs", "nfs-fast"}}
	for name, tc := range map[string]struct {
		shared        []v1alpha1.SharedBackend
		driver, class string
		want          string
	}{
		"the driver and a class match": {[]v1alpha1.SharedBackend{filer}, nfs, "nfs-fast", "filer"},
		"another driver":               {[]v1alpha1.SharedBackend{filer}, "smb.example.com", "nfs", ""},
		"another class":                {[]v1alpha1.SharedBackend{filer}, nfs, "local", ""},
		"no class":                     {[]v1alpha1.SharedBackend{filer}, nfs, "", ""},
		"no backends":                  {nil, nfs, "nfs", ""},
		"two backends with one driver": {[]v1alpha1.SharedBackend{filer, {Name: "archive", Driver: nfs, Classes: []string{"archive"}}}, nfs, "archive", "archive"},
		"two backends with one class":  {[]v1alpha1.SharedBackend{filer, {Name: "archive", Driver: nfs, Classes: []string{"nfs"}}}, nfs, "nfs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sharing(tc.shared...).Rules.BackendForClass(tc.driver, tc.class); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBackends(t *testing.T) {
	rules := sharing(v1alpha1.SharedBackend{Name: "filer", Driver: nfs}, v1alpha1.SharedBackend{Name: "archive", Driver: nfs}).Rules
	if diff := cmp.Diff([]string{"archive", "filer"}, rules.BackendNames()); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
}

func TestShares(t *testing.T) {
	filer := v1alpha1.SharedBackend{Name: "filer", Driver: nfs, Classes: []string{"nfs"}}
	edited := sharedIn("id39")
	edited.Spec.NodeAffinity.Required.NodeSelectorTerms = edited.Spec.NodeAffinity.Required.NodeSelectorTerms[:1]
	for name, tc := range map[string]struct {
		member Member
		host   *corev1.PersistentVolume
		want   bool
	}{
		"another member's volume":               {sharing(filer), sharedIn("id39"), true},
		"the member's own volume":               {sharing(filer), sharedIn("id38"), false},
		"the member does not share the backend": {sharing(v1alpha1.SharedBackend{Name: "archive", Driver: nfs}), sharedIn("id39"), false},
		"the member shares nothing":             {sharing(), sharedIn("id39"), false},
		"a volume that is not shared":           {sharing(filer), edited, false},
		"a PV that Xylem did not create":        {sharing(filer), &corev1.PersistentVolume{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.member.SharesVolume(tc.host); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestCopyClass(t *testing.T) {
	filer := v1alpha1.SharedBackend{Name: "filer", Driver: nfs, Classes: []string{"nfs"}}
	named := func(name string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	unshared := sharedIn("id39")
	unshared.Spec.CSI.VolumeAttributes[v1alpha1.AttributeShared] = ""
	for name, tc := range map[string]struct {
		member       Member
		host         *corev1.PersistentVolume
		class        *storagev1.StorageClass
		want, reason string
	}{
		"the host's class maps to a class of the backend": {sharing(filer), sharedIn("id39"), named("shared"), "nfs", ""},
		"the host's class has the same name":              {sharing(filer), sharedIn("id39"), named("nfs"), "nfs", ""},
		"the host's class maps to another class":          {sharing(filer), sharedIn("id39"), named("fast"), "", v1alpha1.ReasonBackendMismatch},
		"the host's class does not exist":                 {sharing(filer), sharedIn("id39"), nil, "", v1alpha1.ReasonClassNotFound},
		"the backend has another driver here":             {sharing(v1alpha1.SharedBackend{Name: "filer", Driver: "smb.example.com", Classes: []string{"nfs"}}), sharedIn("id39"), named("shared"), "", v1alpha1.ReasonBackendMismatch},
		"the member does not share the backend":           {sharing(), sharedIn("id39"), named("shared"), "", v1alpha1.ReasonBackendMismatch},
		"a volume that is not shared":                     {sharing(filer), unshared, named("shared"), "", v1alpha1.ReasonBackendMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			got, refusal := tc.member.ClassForVolumeCopy(tc.host, tc.class)
			reason := ""
			if refusal != nil {
				reason = refusal.Reason
			}
			if got != tc.want || reason != tc.reason {
				t.Errorf("got %q, %v; want %q, reason %q", got, refusal, tc.want, tc.reason)
			}
		})
	}
}
