package rootservice

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
)

// missingEndpointsDelay is how long a Service must have had no endpoints in the member before Xylem reports it. Its
// Pods may still be starting.
const missingEndpointsDelay = time.Minute

// topic is what an event about a Service is about. Each is reported once, and again after a restart of the manager.
type topic struct {
	service types.UID
	about   reported
}

type reported int

const (
	podInMember reported = iota
	notCreated
	noEndpoints
	slicesOmitted
	quotaExceeded
)

// reportUnreachable reports which clients of a Service do not reach its endpoints. It returns when the next report
// may be due.
func (r *reconciler) reportUnreachable(ctx context.Context, o observed) (time.Duration, error) {
	if o.root == nil || !o.used {
		r.withoutEndpoints.Measure(o.key, false)
		return 0, nil
	}
	again, err := r.reportPodInMember(ctx, o.root)
	if err != nil {
		return 0, err
	}
	if o.refusal != nil {
		due, next := r.news.EventDue(topic{o.root.UID, notCreated}, nil)
		if due {
			r.Recorder.Eventf(o.root, nil, corev1.EventTypeWarning, o.refusal.Reason, "Reflect", "%s", o.refusal.Message)
		}
		again = route.SoonerDelay(again, next)
	}
	if o.slicesOmitted {
		if due, _ := r.news.EventDue(topic{o.root.UID, slicesOmitted}, nil); due {
			r.emitSlicesOmitted(o.root)
		}
	}
	next, err := r.reportMissingEndpoints(ctx, o)
	return route.SoonerDelay(again, next), err
}

// reportPodInMember reports that clients in the host do not reach, or may not reach, an endpoint in the member.
func (r *reconciler) reportPodInMember(ctx context.Context, service *corev1.Service) (time.Duration, error) {
	key := topic{service.UID, podInMember}
	if again := r.news.DueIn(key, nil); again > 0 || len(service.Spec.Selector) == 0 {
		return again, nil
	}
	var pods corev1.PodList
	if err := r.Host.List(ctx, &pods, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector), index.ReadOnly); err != nil {
		return 0, fmt.Errorf("list the Pods of Service %s/%s: %w", service.Namespace, service.Name, err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; runsInMember(pod, r.NodeName) && matchesPod(service, pod) {
			_, again := r.news.EventDue(key, nil)
			r.emitEndpointInMember(service, pod)
			return again, nil
		}
	}
	return 0, nil
}

// reportMissingEndpoints reports that a Service has no endpoints in the member, but has some elsewhere.
func (r *reconciler) reportMissingEndpoints(ctx context.Context, o observed) (time.Duration, error) {
	state := topic{o.root.UID, noEndpoints}
	if o.leaf == nil || len(o.leafSlices)+len(o.wantSlices) > 0 {
		r.withoutEndpoints.Measure(o.key, false)
		r.news.ForgetState(state)
		return 0, nil
	}
	if has, err := r.hasLeafEndpoint(ctx, o.root); err != nil || has {
		r.withoutEndpoints.Measure(o.key, false)
		r.news.ForgetState(state)
		return 0, err
	}
	if again := r.news.DueIn(state, nil); again > 0 {
		return again, nil // it was reported
	}
	if since := r.withoutEndpoints.Measure(o.key, true); since < missingEndpointsDelay {
		return missingEndpointsDelay - since, nil
	}
	var elsewhere discoveryv1.EndpointSliceList // read once in each interval of the event
	if err := r.HostLive.List(ctx, &elsewhere, client.InNamespace(o.key.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: o.key.Name}); err != nil {
		return 0, fmt.Errorf("list the EndpointSlices of Service %s in the host: %w", o.key, err)
	}
	_, again := r.news.EventDue(state, nil)
	if hasEndpointElsewhere(elsewhere.Items, r.Member) {
		r.emitMissingEndpoints(o.root)
	}
	return again, nil
}

// hasLeafEndpoint reports whether a Service selects a leaf Pod that has not finished.
func (r *reconciler) hasLeafEndpoint(ctx context.Context, service *corev1.Service) (bool, error) {
	var pods corev1.PodList
	if err := r.Cache.List(ctx, &pods, client.InNamespace(service.Namespace), index.ReadOnly); err != nil {
		return false, fmt.Errorf("list the leaf Pods in namespace %s: %w", service.Namespace, err)
	}
	for i := range pods.Items {
		if matchesPod(service, &pods.Items[i]) && !podstatus.IsPodFinished(&pods.Items[i]) {
			return true, nil
		}
	}
	return false, nil
}

func hasEndpointElsewhere(all []discoveryv1.EndpointSlice, m mirror.Member) bool {
	for i := range all {
		for j := range all[i].Endpoints {
			if !mirror.IsEndpointInMember(&all[i].Endpoints[j], m) {
				return true
			}
		}
	}
	return false
}

// emitEndpointInMember emits a warning on a Service that selects a Pod in the member.
func (r *reconciler) emitEndpointInMember(service *corev1.Service, pod *corev1.Pod) {
	if len(r.PodCIDRs) == 0 {
		r.Recorder.Eventf(service, pod, corev1.EventTypeWarning, v1alpha1.ReasonEndpointsInMember, "CheckEndpoints",
			"the Service has no endpoint for Pod %q: the Pod runs in member %q, whose Pod addresses Xylem does not copy to the host. If the networks are connected, set spec.node.podCIDRs of ClusterRegistration %q; see Networking in Xylem's README",
			pod.Name, r.Registration, r.Registration)
		return
	}
	r.Recorder.Eventf(service, pod, corev1.EventTypeWarning, v1alpha1.ReasonEndpointsInMember, "CheckEndpoints",
		"the endpoint for Pod %q is an address of member %q: clients reach it only if their network routes to the member's Pods. Xylem does not connect networks. Check that route; see Networking in Xylem's README",
		pod.Name, r.Registration)
}

// emitMissingEndpoints emits a warning on a Service whose endpoints are all outside the member.
func (r *reconciler) emitMissingEndpoints(service *corev1.Service) {
	if len(service.Spec.Selector) == 0 {
		r.Recorder.Eventf(service, nil, corev1.EventTypeWarning, v1alpha1.ReasonEndpointsInMember, "CheckEndpoints",
			"the Service has no endpoints in member %q: it has no selector, and none of its endpoints are in spec.services.reachable of ClusterRegistration %q. If Pods in the member can reach them, add their range there. Otherwise, ask the member's admin to create an EndpointSlice for the Service",
			r.Registration, r.Registration)
		return
	}
	r.Recorder.Eventf(service, nil, corev1.EventTypeWarning, v1alpha1.ReasonEndpointsInMember, "CheckEndpoints",
		"the Service has no endpoints in member %q: none of its Pods runs there, and none of its endpoints are in spec.services.reachable of ClusterRegistration %q. If Pods in the member can reach these endpoints, add their range there. Otherwise, run a Pod of the Service in the member",
		r.Registration, r.Registration)
}

// emitSlicesOmitted emits a warning on a Service with too many EndpointSlices.
func (r *reconciler) emitSlicesOmitted(service *corev1.Service) {
	r.Recorder.Eventf(service, nil, corev1.EventTypeWarning, v1alpha1.ReasonEndpointsInMember, "CheckEndpoints",
		"member %q gets the endpoints of only %d of the Service's EndpointSlices. Divide the Service into several",
		r.Registration, maxServiceSlices)
}

// emitNameTaken emits a warning on a Service if the member has another Service or EndpointSlice with the same name.
func (r *reconciler) emitNameTaken(service *corev1.Service, isSlice bool, name string) {
	kind := "Service"
	if isSlice {
		kind = "EndpointSlice"
	}
	r.Recorder.Eventf(service, nil, corev1.EventTypeWarning, v1alpha1.ReasonNameTaken, "Reflect",
		"member %q has a %s %q in namespace %q that Xylem did not create, so Xylem does not change it, and Pods there use it. Ask the member's admin to delete it, or rename the Service, or keep it out of members with annotation %s=false",
		r.Registration, kind, name, service.Namespace, v1alpha1.AnnotationReflect)
}

// reportQuota reports on the Service that a quota in the member rejects it or its EndpointSlice, or has rejected another one
// a short while ago.
func (r *reconciler) reportQuota(o observed, d waitForQuota) {
	if due, _ := r.news.EventDue(topic{o.root.UID, quotaExceeded}, nil); due {
		_ = r.reportRejection(o, "create", d.leaf, d.rejection)
	}
}

// reportRejection reports on the Service why the member's API server rejects a write. It returns the error for a
// retry with backoff.
func (r *reconciler) reportRejection(o observed, doing string, leaf client.Object, err error) error {
	kind := "Service"
	if _, isSlice := leaf.(*discoveryv1.EndpointSlice); isSlice {
		kind = "EndpointSlice"
	}
	if refusal := report.MemberWriteRefusal(r.Registration, doing, kind+" "+leaf.GetName(), err); refusal != nil {
		r.Recorder.Eventf(o.root, nil, corev1.EventTypeWarning, refusal.Reason, "Reflect", "%s", refusal.Message)
	}
	return err
}
