package suite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// Fence returns the Lease of a member's fence.
func Fence(ctx context.Context, x *harness.Xylem, member string) *coordinationv1.Lease {
	ginkgo.GinkgoHelper()
	id, err := x.Host.ID(ctx)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	lease, err := Read[coordinationv1.Lease](ctx, x.Member(member), v1alpha1.DefaultNamespace, id)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return lease
}

// LetGo returns the lines about released and missing objects in the host's record of a member's fence.
func LetGo(ctx context.Context, x *harness.Xylem, clusterID string) (string, error) {
	record, err := Read[coordinationv1.Lease](ctx, x.Host, v1alpha1.DefaultNamespace, "fence-"+clusterID)
	if err != nil {
		return "", err
	}
	return record.Annotations[v1alpha1.AnnotationLetGo], nil
}

// Aging returns a function that waits until a backup that was just taken is older than the epochs of
// the members' fences. In production, an epoch lasts five minutes.
func Aging(ctx context.Context, x *harness.Xylem, members ...string) func() {
	ginkgo.GinkgoHelper()
	epoch := func(member string) int {
		ginkgo.GinkgoHelper()
		n, err := strconv.Atoi(Fence(ctx, x, member).Annotations[v1alpha1.AnnotationFenceEpoch])
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		return n
	}
	before := map[string]int{}
	for _, member := range members {
		before[member] = epoch(member)
	}
	return func() {
		ginkgo.GinkgoHelper()
		for member, was := range before {
			// An advance may have been in progress when the backup was taken.
			gomega.Eventually(ctx, func() int { return epoch(member) }).Should(gomega.BeNumerically(">", was+1))
		}
	}
}

// Restored waits until a member's registration reports a restore that is not confirmed. reason is
// that of its Connected condition.
func Restored(ctx context.Context, x *harness.Xylem, member, reason string) *v1alpha1.ClusterRegistration {
	ginkgo.GinkgoHelper()
	return Until[v1alpha1.ClusterRegistration](ctx, x.Host, "", member, isConnected(reason, v1alpha1.AnnotationConfirmRestore+"="))
}

// Confirm annotates a member's registration with the token in its Connected condition, as an admin does.
func Confirm(ctx context.Context, x *harness.Xylem, member, reason string) {
	ginkgo.GinkgoHelper()
	cr := Restored(ctx, x, member, reason)
	_, token, _ := strings.Cut(meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionConnected).Message, v1alpha1.AnnotationConfirmRestore+"=")
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationConfirmRestore, token)
	gomega.Expect(x.Host.API.Patch(ctx, cr, client.RawPatch(types.MergePatchType, []byte(body)))).To(gomega.Succeed())
}

// ConfirmRestore confirms a restore, and waits until the member is Ready and requires no confirmation.
func ConfirmRestore(ctx context.Context, x *harness.Xylem, member, reason string) {
	ginkgo.GinkgoHelper()
	Confirm(ctx, x, member, reason)
	Until[v1alpha1.ClusterRegistration](ctx, x.Host, "", member, isConnected(v1alpha1.ReasonConnected, ""))
	gomega.Expect(x.AwaitReady(ctx, member)).To(gomega.Succeed())
}

func isConnected(reason, says string) gomega.OmegaMatcher {
	return gomega.HaveField("Status.Conditions", gomega.ContainElement(gomega.And(
		gomega.HaveField("Type", v1alpha1.ConditionConnected), gomega.HaveField("Status", metav1.ConditionTrue),
		gomega.HaveField("Reason", reason), gomega.HaveField("Message", gomega.ContainSubstring(says)))))
}
