package tree

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// protection is the finalizer that Kubernetes sets on claims.
const protection = "kubernetes.io/pvc-protection"

// addPodsInUse adds the Pods that block the deletion of a claim, instead of its finalizers.
func (f builder) addPodsInUse(n *inspect.Node, c *inspect.ClaimFacts) {
	if c.Claim.DeletionTimestamp == nil || !slices.Contains(c.Claim.Finalizers, protection) {
		return
	}
	pods := c.Pods
	if f.Pod != nil {
		pods = []inspect.PodFacts{*f.Pod}
	}
	for i := range pods {
		pod := pods[i].Pod
		if pod.Spec.NodeName == "" {
			continue
		}
		held := fmt.Sprintf("in use by Pod \"%s/%s\"", pod.Namespace, pod.Name)
		if r := f.Registration(f.MemberOfPod(&pods[i])); r != nil {
			if away := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionNodeReady); away != nil && !inspect.IsConnected(r) {
				held += fmt.Sprintf(", which waits for member %q, away since %s", r.Name, away.LastTransitionTime.UTC().Format("15:04"))
			}
		}
		n.Details = slices.DeleteFunc(n.Details, func(d string) bool { return strings.HasPrefix(d, "has finalizers ") })
		n.Details = append(n.Details, held)
	}
}
