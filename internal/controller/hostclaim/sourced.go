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
	"github.com/xylem-io/xylem/internal/index/registered"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/placement/copysource"
)

// waitingPod is a Pod that cannot be scheduled, and its claims other than the observed one.
type waitingPod struct {
	pod    *corev1.Pod
	others []otherClaim
}

// otherClaim is another claim of the Pod, with its host PV if it is bound, or the record of its
// data source if it is not.
type otherClaim struct {
	name   string
	volume *corev1.PersistentVolume
	record datasource.Record
}

// waitingPod observes a Pod's other claims.
func (r *Reconciler) waitingPod(ctx context.Context, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) (waitingPod, error) {
	w := waitingPod{pod: pod}
	for _, name := range podspec.ClaimNames(pod) {
		if name == claim.Name {
			continue
		}
		other, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Client, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err != nil {
			return w, err
		}
		if other == nil {
			continue
		}
		seen := otherClaim{name: name}
		if seen.volume, err = index.Find[corev1.PersistentVolume](ctx, r.Client, index.Named(other.Spec.VolumeName)); err != nil {
			return w, err
		}
		if other.Spec.VolumeName == "" {
			seen.record, _ = datasource.RecordOf(other)
		}
		w.others = append(w.others, seen)
	}
	return w, nil
}

// locate returns the location of the claim's data source, or the zero Location if it has none.
func (o observed) locate() copysource.Location {
	if o.source == nil {
		return copysource.Location{}
	}
	return o.source.Locate(o.claim)
}

// kind returns the claim's data source, in the form that registrations' rules use, or nil if it has
// none.
func (o observed) kind() *datasource.Source {
	if o.source == nil {
		return nil
	}
	return &o.source.Of
}

// bySource reports whether the claim's data source determines the member, or prevents all members
// from provisioning the claim. Once the claim is placed, root_pvc reports on it.
func (o observed) bySource() bool {
	return o.source != nil && o.claim.Annotations[v1alpha1.AnnotationPlacedIn] == "" && (o.source.Of.Placed() || o.locate().Refusal != nil)
}

// sourced returns the decision for a claim that only the member with its data source can create.
// The controller source selects that member, so host_claim never removes the selection.
func (o observed) sourced() decision {
	at := o.locate()
	if at.Refusal != nil {
		return eventWith(at.Refusal.Reason, "%s", at.Refusal.Message)
	}
	has := func(m registered.Member) bool { return m.ClusterID == at.ClusterID }
	i := slices.IndexFunc(o.members, has)
	if leaving := slices.IndexFunc(o.leaving, has); i < 0 && leaving >= 0 {
		return eventWith(v1alpha1.ReasonSourceNotReady, "the claim waits for its data source, %s: the source is in member %q, which is being deregistered. Register the member again, or delete this claim", o.source.Of, o.leaving[leaving].Registration)
	}
	if i < 0 {
		return eventWith(v1alpha1.ReasonSourceNotReady, "the claim waits for its data source, %s: the source is in cluster %q, which is not registered. Register that cluster, or delete this claim", o.source.Of, at.ClusterID)
	}
	m := o.members[i]
	if lost(m) {
		return eventWith(v1alpha1.ReasonMemberAway, "member %q, which has the claim's data source, %s, is not connected. Xylem continues when the member is connected again; `kubectl describe clusterregistration %s` shows the cause",
			m.Registration, o.source.Of, m.Registration)
	}
	if answer := m.Answer(placement.Request{Namespace: o.namespace, Class: o.class, Source: o.kind()}); answer.Refusal != nil {
		reason := answer.Refusal.Reason
		if reason == v1alpha1.ReasonClassKeepsOff {
			reason = v1alpha1.ReasonSourceElsewhere
		}
		return eventWith(reason, "the claim can only be created in member %q, which has %s: %s", m.Registration, o.source.Of, answer.Refusal.Message)
	}
	if _, offered := m.Largest[o.class.Name]; !offered && m.Connected && o.stuck {
		class, rule := m.ClassFor(o.class)
		if o.has(m.Registration, class) {
			return eventWith(v1alpha1.ReasonCapacityUnpublished, "the claim can only be created in member %q, which has %s, but the host has no CSIStorageCapacity of StorageClass %q for this member. If this does not change soon, see the events of `kubectl describe clusterregistration %s`",
				m.Registration, o.source.Of, o.class.Name, m.Registration)
		}
		return eventWith(v1alpha1.ReasonNotOffered, "the claim can only be created in member %q, which has %s, but no StorageClass %q (by %s). Create the class in that member, map the class of the claim to another one in the ClusterRegistration (spec.storage.classes), or delete this claim and use the class of its source",
			m.Registration, o.source.Of, class, rule)
	}
	return o.podsElsewhere(m)
}

// podsElsewhere reports why the claim's Pods cannot run in the member with the data source, unless
// one of them can.
func (o observed) podsElsewhere(m registered.Member) decision {
	if m.Node == nil || len(o.pods) == 0 {
		return decision{}
	}
	var obstacles []string
	for _, w := range o.pods {
		why := w.elsewhere(m, o.namespace)
		if why == "" {
			return decision{}
		}
		obstacles = append(obstacles, fmt.Sprintf("Pod %q cannot run there, because %s", w.pod.Name, why))
	}
	return eventWith(v1alpha1.ReasonSourceElsewhere, "the claim can only be created in member %q, which has %s: %s. Change the Pod, or use a source in another member",
		m.Registration, o.source.Of, some(obstacles, "; "))
}

// elsewhere returns why a Pod cannot run in a member, because of its own constraints or its other
// claims. It returns "" if it can.
func (w waitingPod) elsewhere(m registered.Member, in placement.Namespace) string {
	if !placement.Selects(w.pod, m.Node) {
		return "its nodeSelector or node affinity excludes the member"
	}
	var apart []string
	for _, other := range w.others {
		answer := m.Answer(placement.Request{Namespace: in, Volume: other.volume})
		switch {
		case other.volume != nil && answer.Refusal != nil && answer.Refusal.Reason == v1alpha1.ReasonVolumeElsewhere:
			apart = append(apart, fmt.Sprintf("the volume of its claim %q is elsewhere", other.name))
		case other.record.ClusterID != "" && other.record.ClusterID != m.ClusterID:
			apart = append(apart, fmt.Sprintf("the data source of its claim %q is elsewhere", other.name))
		}
	}
	return strings.Join(apart, ", and ")
}
