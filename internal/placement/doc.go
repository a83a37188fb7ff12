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
// evaluate this rule and would select the same node again.
//
// Answer applies the rules of one member to one object. Survey asks which members can take some claims and
// their Pods, and also considers virtual nodes and published capacity. Its verdicts contain each member's
// obstacles. host_claim and waiting_pod summarize them; source, recovery, leaf_pod and `kubectl xylem move`
// look for members without one. Each obstacle has one reason, message and remedy (Obstacle).
//
// CopySource finds the member that has the data source of a claim: the disk of a clone's source claim,
// or the snapshot to restore. Only that member can create the claim's volume. Except in
// CopyLocation.Unready, it reads only objects in the host, which a member's admin cannot forge.
//
// StorageClassFor maps a host class to a member's class by the first rule that applies: the registration's
// exact rule, the class's parameter, the registration's prefix, the same name. If the member lacks
// that class, the claim waits, and Xylem does not try later rules. Only an admin can write these
// rules. A claim's class is the one that Kubernetes reads (the old annotation before the field), so
// that quota counts the disk's class.
package placement
