package stories_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// copies returns how Xylem names the copies of ConfigMaps and Secrets in the story's namespace.
func (s *story) copies(ctx context.Context) mirror.ConfigCopies {
	GinkgoHelper()
	var namespace, system corev1.Namespace
	Expect(x.Host.API.Get(ctx, client.ObjectKey{Name: s.namespace}, &namespace)).To(Succeed())
	Expect(x.Host.API.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system)).To(Succeed())
	return mirror.ConfigCopies{HostID: string(system.UID), NamespaceUID: namespace.UID}
}

// readingConfigMap makes a Pod's first container read its environment from a ConfigMap.
func readingConfigMap(name string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
	}
}

// readingSecret makes a Pod's first container read its environment from a Secret.
func readingSecret(name string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
	}
}

var _ = Describe("A ConfigMap or Secret that a Pod refers to", func() {
	It("is copied with the Pod, kept up to date, and removed with the last Pod that needs it", suite.Slow, func(ctx SpecContext) {
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
		copied := s.copies(ctx)
		leaf := until[corev1.ConfigMap](ctx, s, member, copied.NameOfCopy("settings"), HaveField("Data", settings.Data))
		Expect(leaf.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRoot, s.namespace+"/settings"))
		Expect(leaf.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRootUID, string(settings.UID)))
		until[corev1.Secret](ctx, s, member, copied.NameOfCopy("password"), HaveField("Data", password.Data))
		until[corev1.Secret](ctx, s, member, copied.NameOfCopy("registry"), And(HaveField("Data", registry.Data), HaveField("Type", registry.Type)))
		gone[corev1.Secret](ctx, s, member, copied.NameOfCopy("unrelated"))

		By("changing the objects and then creating another Pod, which gets the change immediately")
		patch(ctx, x.Host, settings, `{"data":{"mode":"second"}}`)
		patch(ctx, x.Host, password, `{"stringData":{"password":"two"}}`)
		s.pod(ctx, "second", using("data"), referring)
		s.running(ctx, "second", nodeOne)
		until[corev1.ConfigMap](ctx, s, member, copied.NameOfCopy("settings"), HaveField("Data", map[string]string{"mode": "second"}))
		until[corev1.Secret](ctx, s, member, copied.NameOfCopy("password"), HaveField("Data", map[string][]byte{"password": []byte("two")}))

		By("deleting one Pod: the copies are kept for the other")
		s.deletePod(ctx, "first")
		gone[corev1.Pod](ctx, s, member, "first")
		s.barrier(ctx, nodeOne)
		until[corev1.ConfigMap](ctx, s, member, copied.NameOfCopy("settings"), HaveField("DeletionTimestamp", BeNil()))

		By("deleting the last Pod: only the copies are deleted")
		s.deletePod(ctx, "second")
		gone[corev1.ConfigMap](ctx, s, member, copied.NameOfCopy("settings"))
		gone[corev1.Secret](ctx, s, member, copied.NameOfCopy("password"))
		gone[corev1.Secret](ctx, s, member, copied.NameOfCopy("registry"))
		until[corev1.Secret](ctx, s, x.Host, "password", Not(BeNil()))
	}, SpecTimeout(storyTime))

	It("does not overwrite a foreign object of the same name in the member, and Pods read the copy (I4)", func(ctx SpecContext) {
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
		s.pod(ctx, "app", boundTo(nodeOne), readingSecret("password"))
		s.pod(ctx, "other", boundTo(nodeOne), readingConfigMap("settings"))
		copied := s.copies(ctx)
		until[corev1.Pod](ctx, s, member, "app", HaveField("Spec.Containers", ContainElement(
			HaveField("EnvFrom", ContainElement(HaveField("SecretRef.Name", copied.NameOfCopy("password")))))))
		until[corev1.Pod](ctx, s, member, "other", HaveField("Spec.Containers", ContainElement(
			HaveField("EnvFrom", ContainElement(HaveField("ConfigMapRef.Name", copied.NameOfCopy("settings")))))))
		until[corev1.Secret](ctx, s, member, copied.NameOfCopy("password"), HaveField("Data", mine.Data))
		until[corev1.Secret](ctx, s, member, "password", And(HaveField("Data", theirs.Data), HaveField("Labels", BeEmpty())))
	}, SpecTimeout(storyTime))

	It("blocks the Pod if a foreign object in the member has the copy's name, and the Pod reports the conflict (I4)", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		s.strange(ctx, member, handedOver(ctx))
		copied := s.copies(ctx)
		for name, kind := range map[string]client.Object{
			"settings": &corev1.ConfigMap{Data: map[string]string{"mode": "theirs"}},
			"password": &corev1.Secret{Data: map[string][]byte{"password": []byte("theirs")}},
		} {
			kind.SetNamespace(s.namespace)
			kind.SetName(copied.NameOfCopy(name))
			inMember(ctx, member, kind)
			mine := kind.DeepCopyObject().(client.Object)
			mine.SetName(name)
			mine.SetResourceVersion("")
			mine.SetUID("")
			Expect(x.Host.API.Create(ctx, mine)).To(Succeed())
		}
		s.pod(ctx, "configured", boundTo(nodeOne), readingConfigMap("settings"))
		s.pod(ctx, "secretive", boundTo(nodeOne), readingSecret("password"))
		s.noted(ctx, "Pod", "configured", v1alpha1.ReasonNameTaken, copied.NameOfCopy("settings"), one)
		s.noted(ctx, "Pod", "secretive", v1alpha1.ReasonNameTaken, copied.NameOfCopy("password"), one)
		for _, pod := range []string{"configured", "secretive"} {
			gone[corev1.Pod](ctx, s, member, pod)
		}
		until[corev1.ConfigMap](ctx, s, member, copied.NameOfCopy("settings"), And(HaveField("Data", HaveKeyWithValue("mode", "theirs")), HaveField("Labels", BeEmpty())))
		until[corev1.Secret](ctx, s, member, copied.NameOfCopy("password"), And(HaveField("Data", HaveKeyWithValue("password", []byte("theirs"))), HaveField("Labels", BeEmpty())))
	}, SpecTimeout(storyTime))

	It("is reported as missing if it is deleted in the host, and the Pod waits for it", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		s.strange(ctx, member, handedOver(ctx))
		full := s.exhausted(ctx, member, corev1.ResourceConfigMaps)
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings"}}
		Expect(x.Host.API.Create(ctx, settings)).To(Succeed())
		s.pod(ctx, "app", boundTo(nodeOne), readingConfigMap("settings"))
		s.noted(ctx, "Pod", "app", "RefusedByMember", "settings", one)
		gone[corev1.Pod](ctx, s, member, "app")
		Expect(x.Host.API.Delete(ctx, settings)).To(Succeed())
		s.noted(ctx, "Pod", "app", "ReferenceMissing", "settings", s.namespace)
		until[corev1.Pod](ctx, s, x.Host, "app", tells(v1alpha1.ReasonReferenceMissing, "settings"))
		gone[corev1.Pod](ctx, s, member, "app")
		settings.ResourceVersion, settings.UID = "", ""
		Expect(x.Host.API.Create(ctx, settings)).To(Succeed())
		until[corev1.Pod](ctx, s, x.Host, "app", tells(v1alpha1.ReasonReferenceAwaited, `ConfigMap "settings"`, one))
		Expect(member.API.Delete(ctx, full)).To(Succeed())
		until[corev1.Pod](ctx, s, member, "app", Not(BeNil()))
	}, SpecTimeout(storyTime))
})
