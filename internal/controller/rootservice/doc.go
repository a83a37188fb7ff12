// Package rootservice creates the host's Services in a member, so that Pods in the member find each other under
// the names that they have in the host. Its controller root_service reconciles one Service for each request, and is
// the only writer of leaf Services and leaf EndpointSlices.
//
// A Service exists in the member while its namespace is used there: while the member has leaf Pods or leaf claims
// of the namespace, or a Pod of the namespace is bound to the virtual node. It has the name, selector and ports of
// its root, so the member's own controllers find its endpoints among the leaf Pods, also while Xylem is down. The
// rule does not depend on whether the Service selects one of these Pods: any of them may be its client. Claims
// count, so that a StatefulSet that is scaled to zero keeps its address, and an unused namespace keeps its Services
// for a while (minUnusedTime), so that a rollout does not change a ClusterIP. When a registration is deleted, only
// leaf Pods count, and the deregistration waits until the Services and EndpointSlices are gone.
//
// Everything that would reach beyond the member is left out (mirror.ServiceFieldTable): node ports, load balancers,
// external IPs, and Services of type ExternalName. A leaf Service has no labels and annotations but its stamp. A
// Service without a selector has only the endpoints of the next paragraph.
//
// Endpoints elsewhere: the member's Pods may be able to reach some addresses outside the member, which its
// registration lists in spec.services.reachable. For each EndpointSlice of the Service in the host, Xylem keeps a
// leaf EndpointSlice with the endpoints that are not in this member and that are in these ranges. The member's own
// controllers leave these alone, because a label names Xylem as their manager, and its proxies and its DNS merge all
// slices of a Service. Xylem watches the host's EndpointSlices only if a registration has such ranges.
//
// A quota in the member may reject Services. Then, all Services of the namespace share one retry, whose interval doubles from
// --recheck-interval up to nameTakenInterval. There is no other limit on their number: the host's quota for Services, and
// the member's, are the limits.
//
// Xylem never changes a Service that it did not create, and reports it on the Service in the host. It deletes a
// leaf Service only after live reads have confirmed the cause, because its address would change.
//
// The controller also reports, once for each Service, which clients don't reach its endpoints: those in the host,
// if it selects Pods in the member, and those in the member, if it has no endpoints there. Xylem does not connect
// networks. Events are repeated after a restart of the manager.
package rootservice
