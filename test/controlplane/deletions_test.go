package controlplane_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/test/controlplane"
)

var _ = Describe("KWOK's user", func() {
	It("can delete only Pods that are already being deleted, and no Nodes", func(ctx SpecContext) {
		for _, c := range fleet.Clusters() {
			s := in(ctx, c)
			kwok := clientOf(c.UserKubeconfig(controlplane.Direct, "kwok"))
			// By name and without a grace period, as KWOK does.
			remove := func(ctx context.Context) error {
				return kwok.CoreV1().Pods(s.namespace).Delete(ctx, "app", *metav1.NewDeleteOptions(0))
			}
			s.pod(ctx, "app", "", annotated(controlplane.AnnotationStopAfter, "1h"))
			uid := s.phase(ctx, "app", corev1.PodRunning).UID
			Expect(remove(ctx)).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
			Expect(s.getPod("app")(ctx)).To(And(HaveField("UID", uid), HaveField("DeletionTimestamp", BeNil())))

			s.deletePod(ctx, "app")
			Expect(s.getPod("app")(ctx)).To(And(HaveField("UID", uid), HaveField("DeletionTimestamp", Not(BeNil()))))
			Expect(remove(ctx)).To(Succeed())
			s.gone(ctx, "app")

			err := kwok.CoreV1().Nodes().Delete(ctx, c.NodeNames()[0], metav1.DeleteOptions{})
			Expect(err).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
		}
	})
})
