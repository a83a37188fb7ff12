package mirror_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
)

// everyday contains a typical Pod with a claim, their leaves, and related objects.
type everyday struct {
	rootPod, leafPod     *corev1.Pod
	rootClaim, leafClaim *corev1.PersistentVolumeClaim
	leafPV, hostPV       *corev1.PersistentVolume
}

func newEveryday(tb testing.TB) everyday {
	tb.Helper()
	var e everyday
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	e.rootClaim = &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "claim-uid", Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: mirrortest.Member.ClusterID}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: mirrortest.PointerTo("gold"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "pvc-1",
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size},
	}
	e.rootPod = mirrortest.NewRootPod(corev1.PodSpec{
		NodeName:   mirrortest.Member.NodeName,
		Containers: []corev1.Container{{Name: "main", Image: "example/main", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}},
	})
	var err error
	if e.leafPod, err = podspec.TranslatePod(e.rootPod, mirrortest.Member); err != nil {
		tb.Fatal(err)
	}
	e.leafPod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, StartTime: mirrortest.PointerTo(metav1.Now()),
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}},
	}
	if e.leafClaim, err = pvc.TranslateClaim(e.rootClaim, mirrortest.PointerTo("gp3"), mirrortest.Member); err != nil {
		tb.Fatal(err)
	}
	e.leafClaim.UID, e.leafClaim.Status = "leaf-claim-uid", e.rootClaim.Status
	e.leafPV = &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "leaf-pv-uid"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: e.rootClaim.Spec.AccessModes, StorageClassName: "gp3",
			ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: e.leafClaim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.example.com", VolumeHandle: "vol-1"}},
		},
	}
	mirror.OriginForRoot(mirrortest.HostID, e.rootClaim).StampLeaf(e.leafPV)
	e.hostPV = hostpv.TranslateVolume(e.leafPV, e.rootClaim, corev1.PersistentVolumeReclaimDelete, mirrortest.Member)
	return e
}

// BenchmarkTranslations measures the work that every reconcile does, whether or not it writes.
func BenchmarkTranslations(b *testing.B) {
	e := newEveryday(b)
	for name, do := range map[string]func() bool{
		"TranslatePod": func() bool {
			leaf, err := podspec.TranslatePod(e.rootPod, mirrortest.Member)
			return leaf != nil && err == nil
		},
		"TranslateClaim": func() bool {
			leaf, err := pvc.TranslateClaim(e.rootClaim, mirrortest.PointerTo("gp3"), mirrortest.Member)
			return leaf != nil && err == nil
		},
		"HostVolume": func() bool {
			return hostpv.TranslateVolume(e.leafPV, e.rootClaim, corev1.PersistentVolumeReclaimDelete, mirrortest.Member) != nil
		},
		"LeafVolumeOf": func() bool { _, _, _, ok := hostpv.LeafOfHostVolume(e.hostPV); return ok },
		"OriginIn":     func() bool { _, ok := mirror.LeafOriginFromHost(mirrortest.HostID, e.leafClaim); return ok },
		"RootPodStatus": func() bool {
			return podstatus.TranslatePodStatus(e.rootPod, e.leafPod, mirrortest.Member).Phase == corev1.PodRunning
		},
		"RootClaimStatus": func() bool { return len(pvc.TranslateClaimStatus(e.rootClaim, e.leafClaim).Capacity) > 0 },
		"ClaimStatusCurrent": func() bool {
			return pvc.IsClaimStatusCurrent(e.rootClaim, pvc.TranslateClaimStatus(e.rootClaim, e.leafClaim))
		},
		"PodStatusApply": func() bool { return podstatus.PodStatusApplyBody(e.rootPod, e.leafPod.Status) != nil },
		"VolumeDrift":    func() bool { return hostpv.VolumeDriftOf(e.hostPV, e.leafPV, "").Capacity == nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !do() {
					b.Fatal("wrong translation")
				}
			}
		})
	}
}

// Every event causes these lookups, so they must not allocate memory.
func TestLookupsDoNotAllocate(t *testing.T) {
	e := newEveryday(t)
	for name, do := range map[string]func(){
		"OriginIn": func() { _, _ = mirror.LeafOriginFromHost(mirrortest.HostID, e.leafClaim) },
	} {
		if n := testing.AllocsPerRun(100, do); n > 0 {
			t.Errorf("%s: got %v allocations, want none", name, n)
		}
	}
}
