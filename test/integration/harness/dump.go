package harness

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Dump writes all objects in all clusters, one line each, and the end of the manager's log. Callers
// use it after a failed test. If namespace is set, Dump limits namespaced objects to it.
func (x *Xylem) Dump(ctx context.Context, w io.Writer, namespace string) {
	if x.Host == nil {
		return
	}
	var registrations v1alpha1.ClusterRegistrationList
	if err := x.Host.API.List(ctx, &registrations); err != nil {
		fmt.Fprintf(w, "registrations: %v\n", err)
	}
	for i := range registrations.Items {
		cr := &registrations.Items[i]
		fmt.Fprintf(w, "registration %s cluster %s volumes %+v%s\n", cr.Name, cr.Status.ClusterID, cr.Status.Volumes, deleted(cr))
		for _, c := range cr.Status.Conditions {
			fmt.Fprintf(w, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	for _, c := range x.Clusters() {
		fmt.Fprintf(w, "--- %s\n", c.Name())
		c.dumpNodes(ctx, w)
		c.dumpClaims(ctx, w, namespace)
		c.dumpVolumes(ctx, w, namespace)
		c.dumpPods(ctx, w, namespace)
		c.dumpEvents(ctx, w, namespace)
		c.dumpLedger(w, namespace)
	}
	if x.Manager != nil {
		fmt.Fprintf(w, "--- end of the manager's log (running: %t)\n%s\n", x.Manager.Running(), x.Manager.Log())
	}
}

func (c *Cluster) dumpNodes(ctx context.Context, w io.Writer) {
	var list corev1.NodeList
	if err := c.API.List(ctx, &list); err != nil {
		fmt.Fprintf(w, "nodes: %v\n", err)
	}
	for i := range list.Items {
		node := &list.Items[i]
		for _, cond := range node.Status.Conditions {
			if cond.Type == corev1.NodeReady {
				fmt.Fprintf(w, "node %s Ready=%s %s: %s unschedulable=%t taints=%v%s\n",
					node.Name, cond.Status, cond.Reason, cond.Message, node.Spec.Unschedulable, node.Spec.Taints, deleted(node))
			}
		}
	}
}

func (c *Cluster) dumpClaims(ctx context.Context, w io.Writer, namespace string) {
	var list corev1.PersistentVolumeClaimList
	if err := c.API.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		fmt.Fprintf(w, "claims: %v\n", err)
	}
	for i := range list.Items {
		claim := &list.Items[i]
		fmt.Fprintf(w, "claim %s/%s %s %s volume %q uid %s rv %s%s\n  %v\n  finalizers %v\n", claim.Namespace, claim.Name, claim.Status.Phase,
			claim.Spec.Resources.Requests.Storage(), claim.Spec.VolumeName, claim.UID, claim.ResourceVersion, deleted(claim), claim.Annotations, claim.Finalizers)
		for _, cond := range claim.Status.Conditions {
			fmt.Fprintf(w, "  %s=%s %s: %s\n", cond.Type, cond.Status, cond.Reason, cond.Message)
		}
	}
}

func (c *Cluster) dumpVolumes(ctx context.Context, w io.Writer, namespace string) {
	var list corev1.PersistentVolumeList
	if err := c.API.List(ctx, &list); err != nil {
		fmt.Fprintf(w, "volumes: %v\n", err)
	}
	for i := range list.Items {
		pv := &list.Items[i]
		claim := "-"
		if ref := pv.Spec.ClaimRef; ref != nil {
			if namespace != "" && ref.Namespace != namespace {
				continue
			}
			claim = fmt.Sprintf("%s/%s %s", ref.Namespace, ref.Name, ref.UID)
		}
		fmt.Fprintf(w, "volume %s %s %s claim %s finalizers %v%s\n  %v %v\n", pv.Name, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy,
			claim, pv.Finalizers, deleted(pv), pv.Labels, pv.Annotations)
	}
}

func (c *Cluster) dumpPods(ctx context.Context, w io.Writer, namespace string) {
	var list corev1.PodList
	if err := c.API.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		fmt.Fprintf(w, "pods: %v\n", err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		fmt.Fprintf(w, "pod %s/%s %s on %q nominated %q uid %s %s%s\n", pod.Namespace, pod.Name, pod.Status.Phase,
			pod.Spec.NodeName, pod.Status.NominatedNodeName, pod.UID, pod.Status.Reason, deleted(pod))
		for _, cond := range pod.Status.Conditions {
			if cond.Status != corev1.ConditionTrue || cond.Type == v1alpha1.PodPushed {
				fmt.Fprintf(w, "  %s=%s %s: %s\n", cond.Type, cond.Status, cond.Reason, cond.Message)
			}
		}
	}
}

func (c *Cluster) dumpEvents(ctx context.Context, w io.Writer, namespace string) {
	var list corev1.EventList
	if err := c.API.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		fmt.Fprintf(w, "events: %v\n", err)
	}
	if namespace == "" {
		list.Items = slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.Type == corev1.EventTypeNormal })
	}
	for i := range list.Items {
		e := &list.Items[i]
		fmt.Fprintf(w, "event %s %s/%s %s %s: %s\n", e.Type, strings.ToLower(e.InvolvedObject.Kind), e.InvolvedObject.Name, e.Source.Component+e.ReportingController, e.Reason, e.Message)
	}
}

func (c *Cluster) dumpLedger(w io.Writer, namespace string) {
	book, err := c.Ledger()
	if err != nil {
		fmt.Fprintf(w, "ledger: %v\n", err)
		return
	}
	for id, e := range book.Live() {
		if namespace == "" || e.ClaimNamespace == namespace {
			fmt.Fprintf(w, "disk %s of %s/%s, volume %s\n", id, e.ClaimNamespace, e.ClaimName, e.PVName)
		}
	}
}

func deleted(obj client.Object) string {
	if obj.GetDeletionTimestamp() == nil {
		return ""
	}
	return " DELETED " + obj.GetDeletionTimestamp().UTC().Format("15:04:05")
}
