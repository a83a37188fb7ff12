// Package placement decides for all controllers whether Xylem may place a claim, class or Pod in a
// member, and if not, why. It reads the registration's rules for classes, namespaces and adoption,
// the class's allowedTopologies, the node affinity of an existing volume, and, if the caller has a
// link, the member's classes and namespaces. It is pure: it uses no client, clock or log.
// TestOnlyPlacementReadsRules fails if other code reads these rules.
//
// It reads topologies as the scheduler does, from the labels of the virtual node, so a tenant who
// writes selected-node cannot bypass a zone restriction. If a class excludes the member, Xylem
// removes the selected node, because the scheduler can select a better one. If the registration
// does not admit the namespace, Xylem keeps the selected node, because the scheduler does not
// evaluate this rule and would select the same node again. The package does not check capacity, or
// whether a claim may reuse its volume.
//
// ClassFor maps a host class to a member's class by the first rule that applies: the registration's
// exact rule, the class's parameter, the registration's prefix, the same name. If the member lacks
// that class, the claim waits, and Xylem does not try later rules. Only an admin can write these
// rules. A claim's class is the one that Kubernetes reads (the old annotation before the field), so
// that quota counts the disk's class.
package placement
