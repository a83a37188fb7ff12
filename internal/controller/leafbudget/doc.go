// Package leafbudget makes a drain of a member's nodes respect the host's PodDisruptionBudgets. Its controller
// leaf_budget keeps a leaf budget for each host budget that selects Pods in the member.
//
// The member's own disruption controller and eviction API enforce a leaf budget, also while Xylem is down. They
// count the leaf Pods themselves, so Xylem must not count them a second time: a count in Xylem's cache is always
// older than an eviction. Therefore, minAvailable does not depend on the health of the member's own Pods:
//
//	minAvailable = max(0, desired - elsewhere) + unready
//
// desired is the status.desiredHealthy of the host's budget. Evictions never change it. elsewhere is the number of
// the budget's Pods that are healthy outside this member. unready is the number of leaf Pods that the member counts
// as healthy, but the host does not, because their readiness gates are in the host. If all Pods of a budget are in one
// member, minAvailable is desired, and the host's budget holds at every moment, unless somebody evicts its Pods in the host
// at the same time.
//
// If the Pods are in several clusters, one cluster observes evictions in another only after they happened.
// In between, each cluster may use the whole allowance. To keep this time short, leaf_pod sets Ready to False
// as soon as a leaf is being deleted, which changes the host budget's status, of which each member gets the events.
//
// elsewhere is counted only if the host counts more healthy Pods than run in the member. Otherwise, it is 0. The host's
// cache contains the Pods of all members. If these are as many as the host counts, elsewhere comes from the cache. If not,
// some Pods are on the host's own nodes, or a cache lags. Then, a live list of the Pods counts them, at most once in
// liveCountInterval for each budget and member. A change in the meantime is counted when the interval ends. An older count
// has the same effect as a later write, which the model allows at any time. If a cache lags, elsewhere may briefly be too
// low, which allows fewer evictions.
//
// While the host's API server would allow no evictions because the budget's status is outdated or invalid, the leaf
// budget does not allow any either.
package leafbudget
