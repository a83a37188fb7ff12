// Package waitingpod reports on a Pod why no node was found for it, or that its node is one of the
// host, which no volume of a member reaches: the controller waiting_pod, on the leader, one request
// for each Pod.
//
// The scheduler knows virtual nodes and their capacity, and reports "did not have enough
// free storage" for an unknown class parameter, a class that no member offers and a member
// that is full alike. Xylem knows the cause: host_claim or root_pvc reported it on a claim
// of the Pod, or it follows from the Pod, the virtual nodes and what the members publish.
// It shows as the Pod's condition xylem.io/Placeable and as an event.
//
// It reports on Pods that use a claim of one of Xylem's classes, and on no other. What is
// on a claim, it repeats at once. What it finds out by itself, it reports once the Pod has
// been unschedulable for patience, so that a Pod on its way is not written to. Figures in a
// message that change are written once in refresh at most (I5).
package waitingpod
