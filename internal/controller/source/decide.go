package source

import (
	"cmp"
	"hash/fnv"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// observed is the input of decide. A nil field means that the object does not exist.
type observed struct {
	claim   *corev1.PersistentVolumeClaim
	class   *storagev1.StorageClass
	source  *placement.CopySource
	members []placement.Candidate
	// namespace is the claim's namespace.
	namespace placement.Namespace
	// pods are the Pods that use the claim and are not bound to a node.
	pods []corev1.Pod
}

// decision contains the annotations to write. The zero decision writes nothing.
type decision struct {
	write bool
	// node is the node to select. If it is empty, the selection stays, unless remove is set.
	node            string
	removeSelection bool
	record          *mirror.DataSourceRecord
}

func decideNodeSelection(o observed) decision {
	if o.claim == nil || o.claim.DeletionTimestamp != nil || o.claim.Spec.VolumeName != "" || o.source == nil || !hostpv.IsXylemClass(o.class) {
		return decision{}
	}
	class, err := hostpv.ReadClassParameters(o.class)
	if err != nil || o.claim.Annotations[v1alpha1.AnnotationPlacedIn] != "" {
		return decision{} // host_claim reports the invalid class, or the claim is already placed
	}
	at := o.source.Locate(o.claim)
	switch {
	case class.Provisioning == v1alpha1.ProvisioningPromise:
		if at.ClusterID == "" || hostpv.PromiseRefusal(o.claim, o.class) != nil || o.sourceRecorded(at.DataSourceRecord) {
			return decision{}
		}
		return decision{write: true, record: &at.DataSourceRecord}
	case !hostpv.WaitsForConsumer(o.class):
		return decision{}
	case !o.source.Of.IsInOneMember():
		return o.selectForPopulator()
	case at.ClusterID == "":
		return o.unselectUnregistered()
	}
	return o.followDataSource(at.DataSourceRecord)
}

// followDataSource selects the member that has the data source.
func (o observed) followDataSource(record mirror.DataSourceRecord) decision {
	node := o.nodeOf(record.ClusterID)
	if node == "" {
		return o.unselectUnregistered()
	}
	steered := o.sourceRecorded(record) && o.claim.Annotations[v1alpha1.AnnotationSteeredTo] == node
	if steered && (o.selectedNode() == node || o.selectedNode() == "" && slices.ContainsFunc(o.pods, lostNomination)) {
		return decision{}
	}
	return decision{write: true, node: node, record: &record}
}

// nodeOf returns the name of the member's virtual node, or "" if it has none. With spec.nodes, it is the node that the
// scheduler or recovery selected, if it is one of them. Otherwise, it is one to which the Pods can be scheduled: the one that
// this controller selected before or, so that claims with the same source do not all get the same node, any of them.
func (o observed) nodeOf(clusterID string) string {
	var able, all []string
	for _, m := range o.members {
		if m.ClusterID != clusterID || m.Node == nil {
			continue
		}
		if all = append(all, m.Node.Name); m.MayRunPods(o.pods...) {
			able = append(able, m.Node.Name)
		}
	}
	if len(able) == 0 {
		able = all
	}
	steered := o.claim.Annotations[v1alpha1.AnnotationSteeredTo]
	switch {
	case len(all) == 0:
		return ""
	case slices.Contains(all, o.selectedNode()):
		return o.selectedNode()
	case slices.Contains(able, steered):
		return steered
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(o.claim.UID))
	return able[hash.Sum32()%uint32(len(able))] //nolint:gosec // a member has few virtual nodes
}

// lostNomination reports whether a Pod lost its nomination, so root_pod may have removed the selected node
// of its claim. The scheduler notices this only if the node is not selected again before its next attempt.
func lostNomination(pod corev1.Pod) bool { return podstatus.NominationLost(&pod) }

// unselectUnregistered removes the selected node if this controller selected it and no registration has the
// node anymore, because the scheduler could then never use it.
func (o observed) unselectUnregistered() decision {
	node := o.claim.Annotations[v1alpha1.AnnotationSteeredTo]
	if node == "" || node != o.selectedNode() || slices.ContainsFunc(o.members, func(m placement.Candidate) bool { return m.HasNode(node) }) {
		return decision{}
	}
	return decision{write: true, removeSelection: true}
}

// selectForPopulator handles a data source that only a populator can read. If the scheduler chose a member
// that cannot create the claim, for example because its registration does not list the source's
// kind, populated selects a member that can.
func (o observed) selectForPopulator() decision {
	query := placement.Query{Namespace: o.namespace, Claims: []placement.ClaimNeed{{Class: o.class, Source: &o.source.Of}}, Pods: o.pods}
	var chosen *placement.Verdict
	var able []placement.Verdict
	for _, v := range placement.Survey(query, o.members) {
		if v.VirtualNodeName() == o.selectedNode() {
			chosen = &v
		}
		if v.Node != nil && v.RuleObstacle == nil {
			able = append(able, v)
		}
	}
	// The PV controller records the provisioner once a node is selected. Before that, only the
	// scheduler may select a node.
	requested := o.claim.Annotations[volumehelpers.AnnStorageProvisioner] == v1alpha1.ProvisionerName
	if !requested || chosen == nil || len(able) == 0 || chosen.RuleObstacle == nil {
		return decision{}
	}
	slices.SortFunc(able, func(a, b placement.Verdict) int {
		return cmp.Or(cmp.Compare(rankByRunningPods(b), rankByRunningPods(a)), cmp.Compare(a.Registration, b.Registration), cmp.Compare(a.Node.Name, b.Node.Name))
	})
	return decision{write: true, node: able[0].Node.Name}
}

// rankByRunningPods returns 1 if the Pods can run on the member's node, and 0 otherwise.
func rankByRunningPods(v placement.Verdict) int {
	if v.Connected && v.Schedulable {
		return 1
	}
	return 0
}

func (o observed) selectedNode() string { return o.claim.Annotations[route.AnnSelectedNode] }

func (o observed) sourceRecorded(record mirror.DataSourceRecord) bool {
	has, ok := mirror.DataSourceRecordOf(o.claim)
	return ok && has == record
}
