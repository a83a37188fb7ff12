// Package awaypod marks the Pods of a member that is away as not ready. Its controller
// away_pod runs on the leader and reconciles one Pod for each request. The node lifecycle
// controller does the same for a kubelet that stopped reporting, but only for Nodes that are
// not Ready, and it evicts their Pods as well. The virtual node of a registration that keeps
// its Pods stays Ready.
//
// away_pod writes the Ready condition of a Pod only while the Node reports that its member is
// away (condition xylem.io/MemberAway) and the member has no Link. While there is a Link,
// leaf_pod writes the condition and corrects it when the member is back.
package awaypod
