package register

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// adviseOnPodCIDRs reports that the host does not show the Pod IPs of a member whose registration
// has no podCIDRs, and suggests the podCIDRs of the member's nodes. It does not set them, because
// not every network uses the nodes' ranges.
func (r *run) adviseOnPodCIDRs(ctx context.Context, cr *v1alpha1.ClusterRegistration) {
	if len(cr.Spec.Node.PodCIDRs) > 0 {
		return
	}
	var nodes corev1.NodeList
	proposal := v1alpha1.AllPodCIDRs
	if err := r.Member.List(ctx, &nodes); err == nil {
		if ranges := podCIDRsOfNodes(nodes.Items); len(ranges) > 0 {
			proposal = strings.Join(ranges, ",")
		}
	}
	fmt.Fprintf(r.Env.ErrOut, "note: the host does not show the Pod IPs of this member. If the host's network can reach the member's Pods, run the command again with --%s=%s\n", FlagPodCIDRs, proposal)
}
