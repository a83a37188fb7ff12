package podspec

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func TestTranslatePodMeta(t *testing.T) {
	root := mirrortest.NewRootPod(corev1.PodSpec{})
	root.Labels = map[string]string{
		"app":                          "web",
		"pod-template-hash":            "5d4f",
		"app.kubernetes.io/managed-by": "Helm",
		"xylem.io/host":                "forged",
	}
	root.Annotations = map[string]string{
		"note": "kept",
		"kubectl.kubernetes.io/last-applied-configuration": "{}",
		"kubectl.kubernetes.io/restartedAt":                "kept",
		"kubernetes.io/config.mirror":                      "forged",
		"xylem.io/root":                                    "other/root",
		"xylem.io/root-uid":                                "forged",
	}
	leaf, err := TranslatePod(root, mirrortest.Member)
	if err != nil {
		t.Fatal(err)
	}
	record := leaf.Annotations[v1alpha1.AnnotationPushed]
	if record == "" {
		t.Error("the leaf has no push record")
	}
	want := metav1.ObjectMeta{
		Namespace: "shop",
		Name:      "web",
		Labels: map[string]string{
			"app":                          "web",
			"pod-template-hash":            "5d4f",
			"app.kubernetes.io/managed-by": "xylem",
			"xylem.io/host":                mirrortest.HostID,
		},
		Annotations: map[string]string{
			"note":                              "kept",
			"kubectl.kubernetes.io/restartedAt": "kept",
			"xylem.io/root":                     "shop/web",
			"xylem.io/root-uid":                 "pod-uid",
			v1alpha1.AnnotationPushed:           record,
		},
	}
	if diff := cmp.Diff(want, leaf.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestTranslatePodVolumes(t *testing.T) {
	mount := func(name string) corev1.VolumeMount { return corev1.VolumeMount{Name: name, MountPath: "/" + name} }
	custom := mirrortest.NewTokenVolume("kube-api-access-mine")
	custom.Projected.Sources[0].ServiceAccountToken.Audience = "vault"
	openShift := mirrortest.NewTokenVolume("kube-api-access-os")
	openShift.Projected.Sources = append(openShift.Projected.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: "openshift-service-ca.crt"},
	}})

	cases := map[string]struct {
		volumes     []corev1.Volume
		wantVolumes []corev1.Volume
		wantMounts  []string
		refused     string
	}{
		"the injected token is dropped with its mounts": {
			volumes:     []corev1.Volume{mirrortest.NewClaimVolume("data", "disk"), mirrortest.NewTokenVolume("kube-api-access-x7b2p")},
			wantVolumes: []corev1.Volume{mirrortest.NewClaimVolume("data", "disk")},
			wantMounts:  []string{"data"},
		},
		"OpenShift's injected token is dropped too": {
			volumes:     []corev1.Volume{openShift, mirrortest.NewClaimVolume("data", "disk")},
			wantVolumes: []corev1.Volume{mirrortest.NewClaimVolume("data", "disk")},
			wantMounts:  []string{"data"},
		},
		"a token for another audience is refused under any name": {
			volumes: []corev1.Volume{custom},
			refused: "spec.volumes[kube-api-access-mine].projected.sources[0].serviceAccountToken",
		},
		"a token under another name is refused": {
			volumes: []corev1.Volume{mirrortest.NewTokenVolume("identity")},
			refused: "spec.volumes[identity].projected.sources[0].serviceAccountToken",
		},
		"an ephemeral volume becomes a plain claim": {
			volumes:     []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}},
			wantVolumes: []corev1.Volume{mirrortest.NewClaimVolume("scratch", "web-scratch")},
			wantMounts:  []string{"scratch"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var mounts []corev1.VolumeMount
			for _, v := range c.volumes {
				mounts = append(mounts, mount(v.Name))
			}
			root := mirrortest.NewRootPod(corev1.PodSpec{
				Volumes:        c.volumes,
				InitContainers: []corev1.Container{{Name: "init", VolumeMounts: mounts}},
				Containers:     []corev1.Container{{Name: "main", VolumeMounts: mounts}},
			})
			leaf, err := TranslatePod(root, mirrortest.Member)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("want a refusal that names %s, got %v", c.refused, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.wantVolumes, leaf.Spec.Volumes); diff != "" {
				t.Errorf("volumes (-want +got):\n%s", diff)
			}
			for _, container := range []corev1.Container{leaf.Spec.InitContainers[0], leaf.Spec.Containers[0]} {
				var got []string
				for _, m := range container.VolumeMounts {
					got = append(got, m.Name)
				}
				if diff := cmp.Diff(c.wantMounts, got); diff != "" {
					t.Errorf("mounts of %s (-want +got):\n%s", container.Name, diff)
				}
			}
		})
	}
}

func TestTranslatePodCollectsRefusals(t *testing.T) {
	_, err := TranslatePod(mirrortest.NewRootPod(corev1.PodSpec{
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}},
		Volumes: []corev1.Volume{
			{Name: "a", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}},
			{Name: "b", VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{}}},
		},
	}), mirrortest.Member)
	var refusal *mirror.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("want a refusal, got %v", err)
	}
	if refusal.Reason != v1alpha1.ReasonPodUnsupported {
		t.Errorf("reason is %s, want PodUnsupported", refusal.Reason)
	}
	for _, path := range []string{"spec.resourceClaims: ", "spec.volumes[a].csi: ", "spec.volumes[b].flexVolume: "} {
		if !strings.Contains(refusal.Message, path) {
			t.Errorf("the message does not name %s: %s", path, refusal.Message)
		}
	}
}

// A Pod with very many parts is refused. One with as much text as etcd accepts is not.
func TestTranslateLargePod(t *testing.T) {
	volumes := make([]corev1.Volume, 50_000)
	for i := range volumes {
		volumes[i] = corev1.Volume{Name: strconv.Itoa(i), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	for name, c := range map[string]struct {
		spec    corev1.PodSpec
		refused bool
	}{
		"very many volumes": {corev1.PodSpec{Volumes: volumes}, true},
		"a few hundred":     {corev1.PodSpec{Volumes: volumes[:500]}, false},
		"a long argument":   {corev1.PodSpec{Containers: []corev1.Container{{Args: []string{strings.Repeat("x", 3<<19)}}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := TranslatePod(mirrortest.NewRootPod(c.spec), mirrortest.Member)
			var refusal *mirror.Refusal
			if refused := errors.As(err, &refusal) && refusal.Reason == v1alpha1.ReasonPodUnsupported; refused != c.refused || !refused && err != nil {
				t.Errorf("error is %v, want a refusal: %t", err, c.refused)
			}
		})
	}
}

func TestTranslatePodHasNoServiceAccount(t *testing.T) {
	leaf, err := TranslatePod(mirrortest.NewRootPod(corev1.PodSpec{
		ServiceAccountName:           "admin",
		AutomountServiceAccountToken: mirrortest.PointerTo(true),
	}), mirrortest.Member)
	if err != nil {
		t.Fatal(err)
	}
	if leaf.Spec.ServiceAccountName != "" || leaf.Spec.AutomountServiceAccountToken == nil || *leaf.Spec.AutomountServiceAccountToken {
		t.Errorf("the leaf has an identity: %q, %v", leaf.Spec.ServiceAccountName, leaf.Spec.AutomountServiceAccountToken)
	}
}

func TestIsDaemonSetPod(t *testing.T) {
	cases := map[string]struct {
		owner metav1.OwnerReference
		want  bool
	}{
		"controlled by a DaemonSet":                   {metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: mirrortest.PointerTo(true)}, true},
		"owned but not controlled by a DaemonSet":     {metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet"}, false},
		"controlled by a ReplicaSet":                  {metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Controller: mirrortest.PointerTo(true)}, false},
		"controlled by a custom kind named DaemonSet": {metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "DaemonSet", Controller: mirrortest.PointerTo(true)}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := mirrortest.NewRootPod(corev1.PodSpec{})
			pod.OwnerReferences = []metav1.OwnerReference{c.owner}
			if got := IsDaemonSetPod(pod); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if IsDaemonSetPod(mirrortest.NewRootPod(corev1.PodSpec{})) {
		t.Error("IsDaemonSetPod returned true for a Pod without owners")
	}
}

func TestClaimNames(t *testing.T) {
	pod := mirrortest.NewRootPod(corev1.PodSpec{Volumes: []corev1.Volume{
		mirrortest.NewClaimVolume("b", "disk-b"),
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		mirrortest.NewClaimVolume("a", "disk-a"),
		mirrortest.NewClaimVolume("again", "disk-b"),
	}})
	if diff := cmp.Diff([]string{"disk-b", "web-scratch", "disk-a"}, ClaimNamesOfPod(pod)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The tests contain literal keys of the contract, so check that the constants have these values.
func TestSpelling(t *testing.T) {
	if v1alpha1.LabelHost != "xylem.io/host" || v1alpha1.AnnotationRootUID != "xylem.io/root-uid" || v1alpha1.AnnotationPushed != "xylem.io/pushed" {
		t.Error("the keys in these tests are outdated")
	}
}

func TestEmptyAffinityIsOmitted(t *testing.T) {
	leaf, err := TranslatePod(mirrortest.NewRootPod(corev1.PodSpec{Affinity: &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: mirrortest.NodeSelectorOf(mirrortest.NodeSelectorTerm(mirrortest.NodeRequirement("kubernetes.io/hostname", "kosmos-cluster38")))},
		PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "xylem.io/cluster"},
		}},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "xylem.io/cluster-id"},
		}},
	}}), mirrortest.Member)
	if err != nil {
		t.Fatal(err)
	}
	if leaf.Spec.Affinity != nil {
		t.Errorf("the leaf's affinity is %v, want none", leaf.Spec.Affinity)
	}
}

func TestTranslatePriorityClass(t *testing.T) {
	m := mirrortest.Member
	m.PriorityClasses = map[string]string{"production": "database"}
	for host, want := range map[string]string{"production": "database", "batch": "", "": ""} {
		leaf, err := TranslatePod(mirrortest.NewRootPod(corev1.PodSpec{PriorityClassName: host, Priority: new(int32(9)), PreemptionPolicy: new(corev1.PreemptNever)}), m)
		if err != nil {
			t.Fatal(err)
		}
		if got := leaf.Spec; got.PriorityClassName != want || got.Priority != nil || got.PreemptionPolicy != nil {
			t.Errorf("the leaf of class %q has class %q, priority %v and policy %v; want only class %q", host, got.PriorityClassName, got.Priority, got.PreemptionPolicy, want)
		}
	}
}
