// Package placement decides for every controller whether a member may have a claim, class or Pod,
// and if not, why. It reads the registration's rules for classes, namespaces and adoption, the
// class's allowedTopologies, the node affinity of an existing volume, and, if the caller is
// connected, the member's classes and namespaces. It is pure: it has no client, no clock and no
// log. TestOnlyPlacementReadsRules fails if anything else reads these rules.
//
// It reads topologies as the scheduler does, from the labels of the virtual node, so a tenant who
// writes selected-node cannot bypass a zone. If a class excludes the member, Xylem removes the
// selected node, because the scheduler can select a better one. If the registration does not admit
// the namespace, Xylem keeps the selected node: the scheduler does not know this rule and would
// select the same node again. The package does not check capacity, or whether a claim may have its
// volume again.
//
// ClassFor maps a host class to a class of the member by the first rule that applies: the
// registration's exact rule, the class's parameter, the registration's prefix, the same name. If
// the member lacks the class of that rule, the claim waits, and Xylem does not try later rules.
// Only an admin can write these rules. The class of a claim is what Kubernetes reads (the old
// annotation before the field), so that quota counts the class of the disk.
package placement
