package stories_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

var _ = Describe("What a Pod refers to", func() {
	It("is pushed along, kept current, and removed with the last Pod that needs it", func(ctx SpecContext) {
		s := begin(ctx)
		meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.namespace, Name: name} }
		settings := &corev1.ConfigMap{ObjectMeta: meta("settings"), Data: map[string]string{"mode": "first"}}
		password := &corev1.Secret{ObjectMeta: meta("password"), Data: map[string][]byte{"password": []byte("one")}}
		registry := &corev1.Secret{ObjectMeta: meta("registry"), Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")}}
		unrelated := &corev1.Secret{ObjectMeta: meta("unrelated"), Data: map[string][]byte{"password": []byte("hidden")}}
		Expect(x.Host.API.Create(ctx, settings)).To(Succeed())
		for _, secret := range []*corev1.Secret{password, registry, unrelated} {
			Expect(x.Host.API.Create(ctx, secret)).To(Succeed())
		}
		referring := func(p *corev1.Pod) {
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}}}}
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
			}})
		}
		s.claim(ctx, "data")
		s.pod(ctx, "first", using("data"), on(nodeOne), referring)
		s.running(ctx, "first", nodeOne)

		member := x.Member(one)
		leaf := until[corev1.ConfigMap](ctx, s, member, "settings", HaveField("Data", settings.Data))
		Expect(leaf.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRootUID, string(settings.UID)))
		until[corev1.Secret](ctx, s, member, "password", HaveField("Data", password.Data))
		until[corev1.Secret](ctx, s, member, "registry", And(HaveField("Data", registry.Data), HaveField("Type", registry.Type)))
		gone[corev1.Secret](ctx, s, member, "unrelated")

		By("changing them, which the next Pod that uses them finds at once")
		patch(ctx, x.Host, settings, `{"data":{"mode":"second"}}`)
		patch(ctx, x.Host, password, `{"stringData":{"password":"two"}}`)
		s.pod(ctx, "second", using("data"), referring)
		s.running(ctx, "second", nodeOne)
		until[corev1.ConfigMap](ctx, s, member, "settings", HaveField("Data", map[string]string{"mode": "second"}))
		until[corev1.Secret](ctx, s, member, "password", HaveField("Data", map[string][]byte{"password": []byte("two")}))

		By("staying while one of them needs them")
		s.deletePod(ctx, "first")
		gone[corev1.Pod](ctx, s, member, "first")
		s.barrier(ctx, nodeOne)
		until[corev1.ConfigMap](ctx, s, member, "settings", HaveField("DeletionTimestamp", BeNil()))

		By("going with the last, in the member alone")
		s.deletePod(ctx, "second")
		gone[corev1.ConfigMap](ctx, s, member, "settings")
		gone[corev1.Secret](ctx, s, member, "password")
		gone[corev1.Secret](ctx, s, member, "registry")
		until[corev1.Secret](ctx, s, x.Host, "password", Not(BeNil()))
	}, SpecTimeout(storyTime))

	It("is left alone in the member if it is somebody else's there (I4)", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		s.strange(ctx, member, handedOver(ctx))
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "password"}, Data: map[string][]byte{"password": []byte("theirs")}}
		inMember(ctx, member, theirs.DeepCopy())
		mine := theirs.DeepCopy()
		mine.Data = map[string][]byte{"password": []byte("mine")}
		Expect(x.Host.API.Create(ctx, mine)).To(Succeed())
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings"}}
		inMember(ctx, member, settings.DeepCopy())
		Expect(x.Host.API.Create(ctx, settings)).To(Succeed())
		s.pod(ctx, "app", boundTo(nodeOne), func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}}}}
		})
		s.pod(ctx, "other", boundTo(nodeOne), func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
		})
		s.noted(ctx, "Pod", "app", "NameTaken", "password")
		s.noted(ctx, "Pod", "other", "NameTaken", "settings")
		s.barrier(ctx, nodeOne)
		until[corev1.Secret](ctx, s, member, "password", HaveField("Data", theirs.Data))
		gone[corev1.Pod](ctx, s, member, "app")
	}, SpecTimeout(storyTime))

	It("is not waited for any more once the host has it no longer, if the member would not have it", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		s.strange(ctx, member, handedOver(ctx))
		full := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "full"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceConfigMaps: resource.MustParse("0")}}}
		inMember(ctx, member, full)
		until[corev1.ResourceQuota](ctx, s, member, "full", HaveField("Status.Hard", HaveLen(1)))
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings"}}
		Expect(x.Host.API.Create(ctx, settings)).To(Succeed())
		s.pod(ctx, "app", boundTo(nodeOne), func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
		})
		s.noted(ctx, "Pod", "app", "RefusedByMember", "settings", one)
		gone[corev1.Pod](ctx, s, member, "app")
		Expect(x.Host.API.Delete(ctx, settings)).To(Succeed())
		until[corev1.Pod](ctx, s, member, "app", Not(BeNil()))
	}, SpecTimeout(storyTime))
})
