package stories_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/integration/harness"
)

const sampleOwner = client.FieldOwner("sample")

// sample begins a story in the namespace of a file in config/samples, and applies the file. It
// changes the name of the sample's registration to an existing one, and reverts the changes to this
// registration when the story ends.
func sample(ctx context.Context, file, registration string) *story {
	GinkgoHelper()
	content, err := os.ReadFile(x.Root("config", "samples", file))
	Expect(err).NotTo(HaveOccurred())
	objects := documents(bytes.NewReader(content))
	var s *story
	for _, obj := range objects {
		switch obj.GetKind() {
		case "Namespace":
			s = beginIn(ctx, obj.GetName())
			continue
		case "ClusterRegistration":
			obj.SetName(registration)
			Expect(unstructured.SetNestedField(obj.Object, harness.SecretName(registration), "spec", "kubeconfigSecretRef", "name")).To(Succeed())
		case "Pod":
			if _, pinned, _ := unstructured.NestedMap(obj.Object, "spec", "nodeSelector"); !pinned {
				break
			}
			Expect(unstructured.SetNestedField(obj.Object, "kosmos-"+registration, "spec", "nodeSelector", "kubernetes.io/hostname")).To(Succeed())
		}
		apply(ctx, obj)
		if obj.GetNamespace() == "" {
			DeferCleanup(unapply, obj, NodeTimeout(settle))
		}
	}
	Expect(s).NotTo(BeNil(), "the sample must contain a namespace")
	return s
}

func apply(ctx context.Context, obj *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(x.Host.API.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), sampleOwner, client.ForceOwnership)).To(Succeed())
}

func unapply(ctx SpecContext, obj *unstructured.Unstructured) {
	if obj.GetKind() != "ClusterRegistration" {
		Expect(client.IgnoreNotFound(x.Host.API.Delete(ctx, obj))).To(Succeed())
		return
	}
	unstructured.RemoveNestedField(obj.Object, "spec", "storage")
	apply(ctx, obj)
	Expect(x.AwaitReady(ctx, obj.GetName())).To(Succeed())
}

func documents(from io.Reader) []*unstructured.Unstructured {
	GinkgoHelper()
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(from, 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(obj)
		if errors.Is(err, io.EOF) {
			return all
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.TrimSpace(obj.GetKind())).NotTo(BeEmpty())
		all = append(all, obj)
	}
}
