package fence_test

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/refs"
)

var _ = Describe("the indexes", func() {
	const shop, other = "index-shop", "index-other"
	m := mirror.Member{Registration: "cluster38", ClusterID: "index-member", NodeName: "kosmos-cluster38", HostID: "host"}

	start := func(ctx SpecContext, setup func(context.Context, client.FieldIndexer) error) cache.Cache {
		GinkgoHelper()
		c, err := cache.New(config, cache.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		c = index.NewCache(c)
		Expect(setup(ctx, c)).To(Succeed())
		running, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Start(running)
		}()
		DeferCleanup(func() { stop(); <-done })
		Expect(c.WaitForCacheSync(ctx)).To(BeTrue())
		return c
	}
	pod := func(namespace, name, node, claimName, configMap string, ephemeral bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		volume := corev1.Volume{Name: "v"}
		if ephemeral {
			volume.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec()}}
		} else {
			volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName}
		}
		p.Spec.Volumes = []corev1.Volume{volume}
		if configMap != "" {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}}
		}
		return p
	}
	names := func(pods []corev1.Pod, err error) []string {
		GinkgoHelper()
		Expect(err).NotTo(HaveOccurred())
		var found []string
		for i := range pods {
			found = append(found, pods[i].Namespace+"/"+pods[i].Name)
		}
		slices.Sort(found)
		return found
	}
	volumeNames := func(volumes []corev1.PersistentVolume, err error) []string {
		GinkgoHelper()
		Expect(err).NotTo(HaveOccurred())
		var found []string
		for i := range volumes {
			found = append(found, volumes[i].Name)
		}
		return found
	}

	It("return exactly the objects that the controllers look up", func(ctx SpecContext) {
		for _, name := range []string{shop, other} {
			Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		}
		leaf := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "index-leaf", UID: "leaf-uid"},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d"}},
			},
		}
		root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "data", UID: "root-uid"}}
		host := hostpv.TranslateVolume(leaf, root, corev1.PersistentVolumeReclaimRetain, m)
		forged := hostpv.TranslateVolume(leaf, root, corev1.PersistentVolumeReclaimRetain, m)
		forged.Name, forged.Labels[v1alpha1.LabelClusterID] = "index-forged", "another"
		foreign := leaf.DeepCopy()
		foreign.Name, foreign.UID = "index-foreign", ""
		foreign.Spec.ClaimRef = &corev1.ObjectReference{Namespace: shop, Name: "data"}
		placed := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "data",
			Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: m.ClusterID}}, Spec: claimSpec()}
		elsewhere := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "data"}, Spec: claimSpec()}
		for _, object := range []client.Object{
			host, forged, foreign, placed, elsewhere,
			pod(shop, "uses", "node-a", "data", "settings", false), pod(shop, "other-claim", "node-b", "more", "", false),
			pod(other, "same-name", "", "data", "settings", false), pod(shop, "ephemeral", "", "", "", true),
		} {
			Expect(api.Create(ctx, object)).To(Succeed())
		}

		c := start(ctx, index.SetupHostIndexes)
		key := types.NamespacedName{Namespace: shop, Name: "data"}
		// Informers start on the first read, so each lookup waits until its informer has synced.
		Expect(names(index.PodsOfClaim(ctx, c, key))).To(Equal([]string{shop + "/uses"}))
		Expect(names(index.PodsOfClaim(ctx, c, types.NamespacedName{Namespace: shop, Name: "ephemeral-v"}))).To(Equal([]string{shop + "/ephemeral"}))
		Expect(names(index.PodsOfReference(ctx, c, refs.KindConfigMap, types.NamespacedName{Namespace: shop, Name: "settings"}))).To(Equal([]string{shop + "/uses"}))
		Expect(names(index.PodsOfReference(ctx, c, refs.KindSecret, types.NamespacedName{Namespace: shop, Name: "settings"}))).To(BeEmpty())
		Expect(names(index.PodsOnNode(ctx, c, "node-a"))).To(Equal([]string{shop + "/uses"}))
		claims, err := index.ClaimsPlacedIn(ctx, c, m.ClusterID)
		Expect(err).NotTo(HaveOccurred())
		Expect(claims).To(HaveLen(1))
		Expect(claims[0].Namespace).To(Equal(shop))
		Expect(volumeNames(index.HostVolumesOfLeaf(ctx, c, m.ClusterID, leaf.Name))).To(Equal([]string{host.Name}), "a PV whose label and handle refer to different members must not belong to any member")
		Expect(volumeNames(index.HostVolumesIn(ctx, c, m.ClusterID))).To(Equal([]string{host.Name}))
		Expect(volumeNames(index.HostVolumesIn(ctx, c, "another"))).To(BeEmpty())
	}, NodeTimeout(timeout))

	It("return the registrations of a cluster", func(ctx SpecContext) {
		for _, name := range []string{"index-one", "index-two"} {
			registration := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterRegistrationSpec{
				KubeconfigSecretRef: v1alpha1.KubeconfigSecretReference{Name: name}}}
			Expect(api.Create(ctx, registration)).To(Succeed())
			registration.Status.ClusterID = "cluster-of-" + name
			Expect(api.Status().Update(ctx, registration)).To(Succeed())
		}
		c := start(ctx, index.SetupHostIndexes)
		found, err := index.RegistrationsOfCluster(ctx, c, "cluster-of-index-two")
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(1))
		Expect(found[0].Name).To(Equal("index-two"))
	}, NodeTimeout(timeout))

	It("return objects that are being deleted, in the host and in the member", func(ctx SpecContext) {
		const namespace, here, node = "index-ending", "ending-member", "ending-node"
		Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		in := mirror.Member{Registration: "ending", ClusterID: here, NodeName: node, HostID: "host"}
		meta := func(name, cluster string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{"example.com/held"},
				Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: cluster}}
		}
		volume := func(name string, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
			pv := hostpv.TranslateVolume(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.PersistentVolumeSpec{
				Capacity: claimSpec().Resources.Requests, AccessModes: claimSpec().AccessModes,
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d"}},
			}}, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}, policy, in)
			Expect(api.Create(ctx, pv)).To(Succeed())
			return pv
		}
		for _, phase := range []corev1.PersistentVolumePhase{corev1.VolumeReleased, corev1.VolumeBound} {
			for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain} {
				pv := volume(strings.ToLower("ending-"+string(phase)+"-"+string(policy)), policy)
				pv.Status.Phase = phase
				Expect(api.Status().Update(ctx, pv)).To(Succeed())
			}
		}
		stays := &corev1.PersistentVolumeClaim{ObjectMeta: meta("stays", here), Spec: claimSpec()}
		Expect(api.Create(ctx, stays)).To(Succeed())
		running := pod(namespace, "ends", node, "ends", "", false)
		running.Finalizers = []string{"example.com/held"}
		for _, object := range []client.Object{
			&corev1.PersistentVolumeClaim{ObjectMeta: meta("ends", here), Spec: claimSpec()},
			&corev1.PersistentVolumeClaim{ObjectMeta: meta("ends-elsewhere", "another"), Spec: claimSpec()},
			running,
		} {
			Expect(api.Create(ctx, object)).To(Succeed())
			Expect(api.Delete(ctx, object)).To(Succeed())
		}

		ending := func(found index.EndingObjects, err error) []string {
			GinkgoHelper()
			Expect(err).NotTo(HaveOccurred())
			var names []string
			for i := range found.Claims {
				names = append(names, "claim "+found.Claims[i].Name)
			}
			for i := range found.Volumes {
				names = append(names, "volume "+found.Volumes[i].Name)
			}
			for i := range found.Pods {
				names = append(names, "Pod "+found.Pods[i].Name)
			}
			slices.Sort(names)
			return names
		}
		host := start(ctx, index.SetupHostIndexes)
		Expect(ending(index.EndingHostObjects(ctx, host, here, node))).To(Equal([]string{"Pod ends", "claim ends", "volume ending-released-delete"}))
		Expect(ending(index.EndingHostObjects(ctx, host, "another", "another-node"))).To(Equal([]string{"claim ends-elsewhere"}))
		member := start(ctx, index.SetupMemberIndexes)
		Expect(ending(index.EndingLeafObjects(ctx, member))).To(Equal([]string{"Pod ends", "claim ends", "claim ends-elsewhere", "volume ending-released-delete"}))
	}, NodeTimeout(timeout))
})

func claimSpec() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}
