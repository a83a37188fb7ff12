// Package awaymember reports on the Pods and claims of an away member. Its two controllers run on the
// leader.
//
// away_pod reconciles one Pod for each request, and marks it as not ready. The node lifecycle controller does the same
// when a kubelet stops reporting, but only on Nodes that are not Ready, and it also evicts their
// Pods. If a registration keeps its Pods, its virtual node stays Ready.
//
// away_pod writes a Pod's Ready condition only while the Node reports that its member is away
// (condition xylem.io/MemberAway) and the member has no Link. While there is a Link, leaf_pod
// writes the condition. It corrects the condition when the member is connected again.
//
// away_pod does not write the condition of a Pod that was not ready before, because leaf_pod would not
// correct it if the Pod was never pushed. Such a Pod was still starting, or was bound to the Node during
// the outage. It gets one event for each outage.
//
// away_attachment reconciles the claims on whose condition xylem.io/Attached no Link reports. It sets
// the condition to Unknown if the member is away or was deregistered, and removes it from a claim
// without a volume in a member. It writes as the same field owner as leaf_pvc, which reports the
// attachments while there is a Link.
package awaymember
