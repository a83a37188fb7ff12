// Package awaypod marks the Pods of a member that is away as not ready: the controller
// away_pod, on the leader, one request for each Pod. It is what the node lifecycle
// controller does for a kubelet that stopped reporting. That controller does it only for
// Nodes that are not Ready, whose Pods are evicted as well; the virtual node of a
// registration that keeps its Pods stays Ready.
//
// It writes the Ready condition of a Pod only while the Node reports that its member is
// away (condition xylem.io/MemberAway) and the member has no Link. As long as there is a
// Link, leaf_pod writes the condition, and it corrects the condition when the member is back.
package awaypod
