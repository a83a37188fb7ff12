// Package placement has one answer to "may this claim, class or Pod go to that member, and
// if not, why?", for every controller that asks. It reads the registration's rules for
// classes, namespaces and adoption, the class's allowedTopologies, the node affinity of an
// existing volume, and, if the caller is connected, what the member has. It is pure: it has
// no client, no clock and no log. TestOnlyPlacementReadsRules fails if anything else reads
// these rules.
//
// It reads topologies as the scheduler does, from the labels of the virtual node, so a
// tenant who writes selected-node does not get past a zone. If a class excludes the member,
// the selection is removed, since the scheduler can choose better. If a namespace is not
// admitted, it is not: the scheduler does not know about it and would choose the same node
// again. Whether there is capacity, and whether a claim may have a volume again, are other
// questions: excluded members are not left out there.
//
// ClassFor says which class of the member a host class maps to, in one order: the
// registration's exact rule, the class's parameter, the registration's prefix, the same
// name. The first that applies is final: if the member lacks that class, the claim waits,
// and no later rule is tried. Only an admin can write these rules. The class of a claim is
// what Kubernetes reads (the old annotation before the field), so that quota is counted for
// the class of the disk.
package placement
