package hostclaim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/placement"
)

// observeWaitingPod is a Pod that cannot be scheduled, and its claims other than the observed one.
type waitingPod struct {
	pod         *corev1.Pod
	otherClaims []otherClaim
}

// otherClaim is another claim of the Pod, with its host PV if it is bound, or the record of its
// data source if it is not.
type otherClaim struct {
	name   string
	volume *corev1.PersistentVolume
	record mirror.DataSourceRecord
}

// observeWaitingPod observes a Pod's other claims.
func (r *Reconciler) observeWaitingPod(ctx context.Context, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) (waitingPod, error) {
	w := waitingPod{pod: pod}
	for _, name := range podspec.ClaimNamesOfPod(pod) {
		if name == claim.Name {
			continue
		}
		other, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Client, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err != nil {
			return w, err
		}
		if other == nil {
			continue
		}
		seen := otherClaim{name: name}
		if seen.volume, err = index.FindObject[corev1.PersistentVolume](ctx, r.Client, index.ClusterScopedKey(other.Spec.VolumeName)); err != nil {
			return w, err
		}
		if other.Spec.VolumeName == "" {
			seen.record, _ = mirror.DataSourceRecordOf(other)
		}
		w.otherClaims = append(w.otherClaims, seen)
	}
	return w, nil
}

// locateSource returns the location of the claim's data source, or the zero Location if it has none.
func (o observed) locateSource() placement.CopyLocation {
	if o.source == nil {
		return placement.CopyLocation{}
	}
	return o.source.Locate(o.claim)
}

// sourceDeterminesMember reports whether the claim's data source determines the member, or prevents all members
// from provisioning the claim. Once the claim is placed, root_pvc reports on it.
func (o observed) sourceDeterminesMember() bool {
	return o.source != nil && o.claim.Annotations[v1alpha1.AnnotationPlacedIn] == "" && (o.source.Of.IsInOneMember() || o.locateSource().Refusal != nil)
}

// decideBySource returns the decision for a claim that only the member with its data source can create.
// The controller source selects that member, so host_claim never removes the selection.
func (o observed) decideBySource() decision {
	at := o.locateSource()
	if at.Refusal != nil {
		return problemDecision(at.Refusal.Reason, "%s", at.Refusal.Message)
	}
	has := func(m placement.Candidate) bool { return m.ClusterID == at.ClusterID }
	i := slices.IndexFunc(o.members, has)
	if leaving := slices.IndexFunc(o.leaving, has); i < 0 && leaving >= 0 {
		return problemDecision(v1alpha1.ReasonSourceNotReady, "the claim waits for its data source, %s: the source is in member %q, which is being deregistered. Register the member again, or delete this claim", o.source.Of, o.leaving[leaving].Registration)
	}
	if i < 0 {
		return problemDecision(v1alpha1.ReasonSourceNotReady, "the claim waits for its data source, %s: the source is in cluster %q, which is not registered. Register that cluster, or delete this claim", o.source.Of, at.ClusterID)
	}
	m := o.members[i]
	if m.Disconnected() {
		return problemDecision(v1alpha1.ReasonMemberAway, "member %q, which has the claim's data source, %s, is not connected. Xylem continues when the member is connected again; `kubectl describe clusterregistration %s` shows the cause",
			m.Registration, o.source.Of, m.Registration)
	}
	only := fmt.Sprintf("the claim can only be created in member %q, which has %s", m.Registration, o.source.Of)
	nodes := slices.DeleteFunc(slices.Clone(o.members), func(m placement.Candidate) bool { return !has(m) })
	v := placement.OneOfEachMember(placement.Survey(o.placementQuery(), nodes))[0]
	if v.RuleObstacle == nil && (v.StorageObstacle == nil || !m.Connected || !o.podUnschedulable) {
		return o.reportPodsElsewhere(nodes, only)
	}
	refusal := v.Refusal()
	switch refusal.Reason {
	case v1alpha1.ReasonClassKeepsOff:
		refusal.Reason = v1alpha1.ReasonSourceElsewhere
	case v1alpha1.ReasonNotOffered:
		refusal.Message += ". Or delete this claim, and use the class of its source"
	}
	return problemDecision(refusal.Reason, "%s: %s", only, refusal.Message)
}

// reportPodsElsewhere reports why the claim's Pods cannot run on any virtual node of the member with the data source,
// unless one of them can.
func (o observed) reportPodsElsewhere(nodes []placement.Candidate, only string) decision {
	var obstacles []string
	for _, w := range o.pods {
		var why string
		for _, m := range nodes {
			if m.Node == nil {
				return decision{}
			}
			if why = w.whyNotRunnableIn(m, o.namespace); why == "" {
				return decision{}
			}
		}
		obstacles = append(obstacles, fmt.Sprintf("Pod %q cannot run there, because %s", w.pod.Name, why))
	}
	if len(obstacles) == 0 {
		return decision{}
	}
	return problemDecision(v1alpha1.ReasonSourceElsewhere, "%s: %s. Change the Pod, or use a source in another member", only, joinFirstNames(obstacles, "; "))
}

// whyNotRunnableIn returns why a Pod cannot run in a member, because of its own constraints or its other
// claims. It returns "" if it can.
func (w waitingPod) whyNotRunnableIn(m placement.Candidate, in placement.Namespace) string {
	query := placement.Query{Namespace: in, Pods: []corev1.Pod{*w.pod}}
	if o := query.VerdictOn(m).NodeObstacle; o != nil && o.Reason == v1alpha1.ReasonNodeSelectorMismatch {
		return "the member " + o.Cause
	}
	var apart []string
	for _, other := range w.otherClaims {
		switch {
		case !m.Reaches(other.volume):
			apart = append(apart, fmt.Sprintf("the volume of its claim %q is elsewhere", other.name))
		case other.record.ClusterID != "" && other.record.ClusterID != m.ClusterID:
			apart = append(apart, fmt.Sprintf("the data source of its claim %q is elsewhere", other.name))
		}
	}
	return strings.Join(apart, ", and ")
}
