package recovery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

var (
	here = mirror.Member{Registration: "first", ClusterID: "id1", NodeName: "kosmos-first", HostID: "host-id"}
	now  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

const timeout = time.Minute

// seen returns an observation of a 1Gi claim and its Pod. The scheduler selected this member, which
// has failed to provision the claim for longer than the timeout. Two other members have capacity;
// the third has the most.
func seen(change ...func(*observed)) observed {
	data := observedClaim{
		Root: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Annotations: map[string]string{
				route.AnnSelectedNode: here.NodeName, v1alpha1.AnnotationPlacedIn: here.ClusterID, v1alpha1.AnnotationReportedBy: here.ClusterID,
				volumehelpers.AnnStorageProvisioner: v1alpha1.ProvisionerName,
			}},
			Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
			Status: corev1.PersistentVolumeClaimStatus{Conditions: []corev1.PersistentVolumeClaimCondition{{
				Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonProvisioningFailed,
				Message: "member first cannot provision the volume: no", LastTransitionTime: metav1.NewTime(now.Add(-timeout - truncationAllowance)),
			}}},
		},
		Class:   &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: v1alpha1.ProvisionerName},
		Timeout: timeout,
	}
	o := observed{
		Member: here, Now: now, SchedulerNominates: true, Claim: &data, ClaimGroup: []observedClaim{data},
		Pods:         []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: corev1.PodStatus{NominatedNodeName: here.NodeName}}},
		Namespace:    placement.Namespace{Name: "shop", Known: true},
		Destinations: []placement.Candidate{node("first", "10Gi"), node("second", "10Gi"), node("third", "20Gi")},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func node(registration, capacity string) placement.Candidate {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: registration}}
	cr.Status.ClusterID = map[string]string{"first": "id1", "second": "id2", "third": "id3"}[registration]
	p := placement.Candidate{Member: placement.MemberOfRegistration(cr, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: cr.NodeName(), Labels: map[string]string{
			v1alpha1.LabelCluster: registration, v1alpha1.LabelClusterID: cr.Status.ClusterID}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})}
	if capacity != "" {
		p.Largest = map[string]resource.Quantity{"disk": resource.MustParse(capacity)}
	}
	return p
}

func rooms(all ...string) func(*observed) {
	return func(o *observed) {
		o.Destinations = nil
		for i, registration := range []string{"first", "second", "third"} {
			o.Destinations = append(o.Destinations, node(registration, all[i]))
		}
	}
}

func annotated(key, value string) func(*observed) {
	return func(o *observed) { set(o.Claim.Root, key, value) }
}

func set(root *corev1.PersistentVolumeClaim, key, value string) {
	if value == "" {
		delete(root.Annotations, key)
		return
	}
	root.Annotations[key] = value
}

func tried(t report.AttemptedMembers) func(*observed) {
	return func(o *observed) {
		text, err := t.AnnotationValue()
		if err != nil {
			panic(err)
		}
		set(o.Claim.Root, v1alpha1.AnnotationTried, text)
	}
}

func failed(names ...string) []report.AttemptedMember {
	members := make([]report.AttemptedMember, len(names))
	for i, name := range names {
		members[i] = report.AttemptedMember{Cluster: node(name, "").ClusterID, Name: name}
	}
	return members
}

func reason(is string) func(*observed) {
	return func(o *observed) { o.Claim.Root.Status.Conditions[0].Reason = is }
}

func since(age time.Duration) func(*observed) {
	return func(o *observed) {
		o.Claim.Root.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-age))
	}
}

func at(registration string, change func(*corev1.Node)) func(*observed) {
	return func(o *observed) {
		for _, p := range o.Destinations {
			if p.Registration == registration {
				change(p.Node)
			}
		}
	}
}

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }
func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
}

func noEvidence(o *observed)   { o.Claim.Root.Status.Conditions = nil }
func noPod(o *observed)        { o.Pods = nil }
func nominated(o *observed)    { o.Pods[0].Status.NominatedNodeName = here.NodeName }
func notNominated(o *observed) { o.Pods[0].Status.NominatedNodeName = "" }
func bound(o *observed)        { o.Claim.Root.Spec.VolumeName = "pvc-1" }

// promised binds the claim to a promise. kept is the status of the claim's Promise condition.
func promised(kept corev1.ConditionStatus) func(*observed) {
	return func(o *observed) {
		o.Claim.Root.Spec.VolumeName = hostpv.PromiseName("uid")
		o.Claim.Root.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: v1alpha1.ClaimPromise, Status: kept}}
	}
}

// steered marks the claim as reassigned here, age ago, but the scheduler has not followed yet.
func steered(age time.Duration) func(*observed) {
	return func(o *observed) {
		noEvidence(o)
		notNominated(o)
		annotated(v1alpha1.AnnotationPlacedIn, "")(o)
		annotated(v1alpha1.AnnotationSteeredTo, here.NodeName)(o)
		tried(report.AttemptedMembers{Moved: now.Add(-age).Unix(), Members: failed("second")})(o)
	}
}

// stranded marks the claim as placed here, without a leaf Pod. Its only Pod has been unschedulable
// for age.
func stranded(age time.Duration) func(*observed) {
	return func(o *observed) {
		noEvidence(o)
		notNominated(o)
		o.Pods[0].Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(now.Add(-age)),
		}}
	}
}

func scheduledReason(is string) func(*observed) {
	return func(o *observed) { o.Pods[0].Status.Conditions[0].Reason = is }
}

func pushed(o *observed) {
	o.Pods[0].Status.Conditions = append(o.Pods[0].Status.Conditions, corev1.PodCondition{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue})
}

// waited marks the Pod as pushed here for longer than the timeout.
func waited(o *observed) { pushedFor(timeout)(o) }

func pushedFor(age time.Duration) func(*observed) {
	return func(o *observed) {
		pushed(o)
		conditions := o.Pods[0].Status.Conditions
		conditions[len(conditions)-1].LastTransitionTime = metav1.NewTime(now.Add(-age))
	}
}

// another adds a Pod that uses the claim.
func another(change func(*corev1.Pod)) func(*observed) {
	return func(o *observed) {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
		change(&pod)
		o.Pods = append(o.Pods, pod)
	}
}

// confined makes a Pod require one of the member's nodes.
func confined(pod *corev1.Pod) {
	pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"on": "the-full-node"}},
	}}}}
}

func started(o *observed) {
	o.Claim.MayBeProvisioning = true
	o.ClaimGroup[0] = *o.Claim
}

// sibling adds another claim of the Pod.
func sibling(change ...func(*observedClaim)) func(*observed) {
	return func(o *observed) {
		s := observedClaim{Root: o.Claim.Root.DeepCopy(), Class: o.Claim.Class, Timeout: timeout}
		s.Root.Name, s.Root.Status.Conditions = "logs", nil
		for _, c := range change {
			c(&s)
		}
		o.ClaimGroup = append(o.ClaimGroup, s)
	}
}

func siblingBound(c *observedClaim) { c.Root.Spec.VolumeName = "pvc-2" }
func siblingBoundIn(cluster string) func(*observedClaim) {
	return func(c *observedClaim) {
		siblingBound(c)
		set(c.Root, v1alpha1.AnnotationPlacedIn, cluster)
	}
}

func siblingOfAnotherClass(c *observedClaim) {
	class := c.Class.DeepCopy()
	class.Name = "zonal"
	c.Class = class
}

// offersZonal publishes capacity for the class of siblingOfAnotherClass.
func offersZonal(o *observed) {
	for _, p := range o.Destinations {
		p.Largest["zonal"] = p.Largest["disk"]
	}
}

func siblingForeign(c *observedClaim) { c.Class = nil }
func siblingLarge(c *observedClaim) {
	c.Root.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("15Gi")}
}

// siblingMoved marks the other claim as reassigned to the second member, age ago.
func siblingMoved(age time.Duration) func(*observedClaim) {
	return func(c *observedClaim) {
		set(c.Root, route.AnnSelectedNode, "kosmos-second")
		set(c.Root, v1alpha1.AnnotationSteeredTo, "kosmos-second")
		text, err := report.AttemptedMembers{Moved: now.Add(-age).Unix(), Members: failed("first")}.AnnotationValue()
		if err != nil {
			panic(err)
		}
		set(c.Root, v1alpha1.AnnotationTried, text)
	}
}

// siblingCopies gives the other claim a data source. node is the node that the controller source
// selected for the claim, or empty.
func siblingCopies(node string) func(*observedClaim) {
	return func(c *observedClaim) {
		c.Source = &mirror.DataSource{Kind: "PersistentVolumeClaim", Name: "golden"}
		c.Root.Name = "copy"
		set(c.Root, route.AnnSelectedNode, node)
		set(c.Root, v1alpha1.AnnotationSteeredTo, node)
	}
}

// copies gives the claim itself a data source in this member.
func copies(o *observed) {
	siblingCopies(here.NodeName)(o.Claim)
	o.ClaimGroup[0] = *o.Claim
}

// said describes a decision: its action, the claims, the destination, and the attempted members.
func said(d decision) string {
	names := func(claims []observedClaim) string {
		var all []string
		for _, c := range claims {
			all = append(all, c.Root.Name)
		}
		return strings.Join(all, ",")
	}
	known := func(t report.AttemptedMembers) string {
		var all []string
		for _, m := range t.Members {
			all = append(all, m.Name)
		}
		return " tried " + strings.Join(all, ",")
	}
	switch d := d.(type) {
	case nothing:
		if d.Again != 0 {
			return "again in " + d.Again.String()
		}
		return "nothing"
	case removeRecords:
		return "settle"
	case lowerCapacity:
		return "lower"
	case moveClaims:
		return "move " + names(d.Claims) + " to " + d.To.Name + known(d.Attempted)
	case freeClaims:
		return "free " + names(d.Claims) + known(d.Attempted) + " until " + time.Unix(d.Attempted.Until, 0).Sub(now).String()
	case recordNoCandidate:
		return "stay" + known(d.Attempted)
	}
	return "unknown"
}

func TestDecide(t *testing.T) {
	paused := func(until time.Duration) report.AttemptedMembers {
		return report.AttemptedMembers{Rounds: 1, Moved: now.Add(-2 * timeout).Unix(), Until: now.Add(until).Unix(), Members: failed("first", "second", "third")}
	}
	for name, tc := range map[string]struct {
		observed observed
		want     string
	}{
		"the claim is gone": {observed{Member: here}, "nothing"},

		// Start of a reassignment.
		"the claim has failed for the timeout: it is reassigned to the member with the most capacity": {seen(), "move data to kosmos-third tried first"},
		"the claim has failed for less than the timeout":                                              {seen(since(timeout - 5*time.Second)), "again in 6s"},
		"slow provisioning is not a failure":                                                          {seen(noEvidence), "nothing"},
		"the failure would be the same in every member":                                               {seen(reason("VolumeLost")), "nothing"},
		"the claim waits because it is placed in another member":                                      {seen(reason("PlacedElsewhere")), "nothing"},
		"the evidence is older than the reassignment to this member: the timeout starts again":        {seen(since(time.Hour), tried(report.AttemptedMembers{Moved: now.Unix()})), "again in 1m1s"},
		"another member's node is selected":                                                           {seen(annotated(route.AnnSelectedNode, "kosmos-second")), "nothing"},
		"no node is selected":                                                                         {seen(annotated(route.AnnSelectedNode, "")), "nothing"},
		"the class belongs to another provisioner":                                                    {seen(func(o *observed) { o.Claim.Class = nil }), "nothing"},
		"the claim is being deleted":                                                                  {seen(func(o *observed) { o.Claim.Root.DeletionTimestamp = &metav1.Time{Time: now} }), "nothing"},
		"no Pod waits for the claim":                                                                  {seen(noPod), "again in 1m0s"},
		"the claim is bound after members were tried: the record is removed":                          {seen(bound, tried(paused(0))), "settle"},
		"the claim is bound to an unfulfilled promise: leaf_pod needs the record":                     {seen(promised(corev1.ConditionFalse), tried(paused(0))), "nothing"},
		"the claim is bound to a fulfilled promise: the record is removed":                            {seen(promised(corev1.ConditionTrue), tried(paused(0))), "settle"},
		"the claim is bound after a reassignment: the record is removed":                              {seen(bound, annotated(v1alpha1.AnnotationSteeredTo, here.NodeName)), "settle"},
		"the claim is bound and has no record (I5)":                                                   {seen(bound), "nothing"},
		"the claim is bound in another member, whose controller removes the record (I5)":              {seen(bound, tried(paused(0)), annotated(v1alpha1.AnnotationPlacedIn, "id2")), "nothing"},
		"reassigned here, and the scheduler follows: root_pvc continues":                              {seen(steered(time.Hour), nominated), "again in 1m0s"},
		"reassigned here, and the scheduler still has time to follow":                                 {seen(steered(10 * time.Second)), "again in 51s"},
		"reassigned here, but the scheduler does not follow: the next member is tried":                {seen(steered(timeout + truncationAllowance)), "move data to kosmos-third tried second,first"},
		"reassigned here, but the first member is not proven empty yet":                               {seen(steered(timeout+truncationAllowance), annotated(v1alpha1.AnnotationPlacedIn, "id2")), "nothing"},
		"reassigned here, but the Pod was deleted":                                                    {seen(steered(timeout+truncationAllowance), noPod), "again in 1m0s"},
		"reassigned here, and the scheduler does not nominate nodes": {
			seen(steered(timeout+truncationAllowance), func(o *observed) { o.SchedulerNominates = false }), "again in 1m0s"},
		"reassigned here, and the class's timeout is shorter than the scheduler's backoff": {
			seen(steered(5*time.Second), func(o *observed) { o.Claim.Timeout = 2 * time.Second }), "again in 11s"},
		"reassigned here, the scheduler does not nominate nodes, and the Pod cannot run here": {
			seen(steered(timeout+truncationAllowance), at("first", tainted), func(o *observed) { o.SchedulerNominates = false }), "move data to kosmos-third tried second,first"},

		"the condition was reported by the previous member: it is ignored (I8)": {seen(reason(v1alpha1.ReasonOutOfSpace), func(o *observed) {
			o.Claim.Root.Annotations[v1alpha1.AnnotationReportedBy] = "id2"
		}), "nothing"},

		// The scheduler keeps to the selection, but places none of the Pods here.
		"the Pod was replaced by one that cannot run here: the claim is reassigned":                          {seen(stranded(timeout + truncationAllowance)), "move data to kosmos-third tried first"},
		"the Pod has been unschedulable for less than the timeout":                                           {seen(stranded(10 * time.Second)), "again in 51s"},
		"the Pod is unschedulable, and the claim was reassigned here only just now":                          {seen(stranded(time.Hour), tried(report.AttemptedMembers{Moved: now.Unix()})), "again in 1m1s"},
		"the Pod is unschedulable, and the class's timeout is shorter than the scheduler's backoff":          {seen(stranded(5*time.Second), func(o *observed) { o.Claim.Timeout = 2 * time.Second }), "again in 11s"},
		"the Pod is unschedulable, and root_pvc has not placed the claim":                                    {seen(stranded(time.Hour), annotated(v1alpha1.AnnotationPlacedIn, "")), "move data to kosmos-third tried first"},
		"the Pod is unschedulable, and another member is not proven empty yet":                               {seen(stranded(time.Hour), annotated(v1alpha1.AnnotationPlacedIn, "id2")), "nothing"},
		"the Pod is unschedulable everywhere: the scheduler can select any member, and a backoff begins":     {seen(stranded(time.Hour), tried(report.AttemptedMembers{Members: failed("second", "third")})), "free data tried second,third,first until 1m0s"},
		"the Pod is unschedulable everywhere, and the backoff has not ended (I5)":                            {seen(stranded(time.Hour), tried(paused(30*time.Second))), "again in 30s"},
		"the Pod is unschedulable, and no other member is suitable: this is recorded":                        {seen(stranded(time.Hour), rooms("10Gi", "", "")), "stay tried first"},
		"the Pod is unschedulable, and no other member is suitable, which is already recorded (I5)":          {seen(stranded(time.Hour), rooms("10Gi", "", ""), tried(report.AttemptedMembers{Members: failed("first")})), "again in 1m0s"},
		"the Pod is unschedulable, but nominated here again":                                                 {seen(stranded(time.Hour), nominated), "nothing"},
		"the Pod is unschedulable, but pushed":                                                               {seen(stranded(time.Hour), pushed), "again in 1m0s"},
		"the scheduler has not tried the new Pod yet":                                                        {seen(noEvidence, notNominated), "again in 1m0s"},
		"the scheduler could not process the Pod":                                                            {seen(stranded(time.Hour), scheduledReason(corev1.PodReasonSchedulerError)), "again in 1m0s"},
		"the Pod was deleted, and none has replaced it yet":                                                  {seen(noEvidence, noPod), "again in 1m0s"},
		"one of two Pods is unschedulable, and the scheduler has not tried the other one yet":                {seen(stranded(time.Hour), elsewherePod), "again in 1m0s"},
		"the Pod is unschedulable, and another one has a scheduling gate":                                    {seen(stranded(time.Hour), gatedPod), "move data to kosmos-third tried first"},
		"the Pod is unschedulable, and the provisioner may be creating the volume":                           {seen(stranded(time.Hour), started), "again in 1m0s"},
		"the Pod is unschedulable, and the provisioner may be creating the volume of another claim":          {seen(stranded(time.Hour), sibling(func(c *observedClaim) { c.MayBeProvisioning = true })), "again in 1m0s"},
		"the Pod with several claims is unschedulable: they are reassigned together":                         {seen(stranded(time.Hour), sibling()), "move data,logs to kosmos-third tried first"},
		"the Pod is unschedulable, and another of its claims has its volume here":                            {seen(stranded(time.Hour), sibling(siblingBound)), "again in 1m0s"},
		"the Pod is unschedulable, the scheduler does not nominate nodes, and the Pod can run here":          {seen(stranded(time.Hour), func(o *observed) { o.SchedulerNominates = false }), "again in 1m0s"},
		"the Pod is unschedulable, the scheduler does not nominate nodes, and this member's node is tainted": {seen(stranded(time.Hour), at("first", tainted), func(o *observed) { o.SchedulerNominates = false }), "move data to kosmos-third tried first"},

		// Data sources.
		"the claim is cloned from a claim in this member: it stays":                                  {seen(copies), "again in 1m0s"},
		"another claim of the Pod is cloned from a claim in this member":                             {seen(sibling(siblingCopies(here.NodeName))), "again in 1m0s"},
		"another claim's source is in another member: the claim follows immediately":                 {seen(noEvidence, sibling(siblingCopies("kosmos-second"))), "move data to kosmos-second tried "},
		"another claim's source is in another member, and this member has failed: the claim follows": {seen(sibling(siblingCopies("kosmos-second"))), "move data to kosmos-second tried "},
		"no member is selected for another claim's source yet":                                       {seen(noEvidence, sibling(siblingCopies(""))), "nothing"},
		"two other claims have sources in different members: no member is suitable (I5)":             {seen(noEvidence, sibling(siblingCopies("kosmos-second")), sibling(siblingCopies("kosmos-third"))), "nothing"},
		"another claim's source is in another member, and that claim has its volume":                 {seen(noEvidence, sibling(siblingCopies("kosmos-second"), siblingBound)), "nothing"},
		"another claim's source is in another member, and a third claim has its volume":              {seen(noEvidence, sibling(siblingCopies("kosmos-second")), sibling(siblingBound)), "nothing"},
		"another claim's source is in a member without a node":                                       {seen(noEvidence, sibling(siblingCopies("kosmos-fourth"))), "nothing"},
		"no other member has a populator for the kind of the claim's source": {seen(func(o *observed) {
			o.Claim.Source = &mirror.DataSource{Group: "example.com", Kind: "Image", Name: "i"}
			o.ClaimGroup[0] = *o.Claim
		}), "stay tried first"},

		// Selection of the next member.
		"two members have the same capacity: the first by name is selected": {seen(rooms("10Gi", "10Gi", "10Gi")), "move data to kosmos-second tried first"},
		"a member with too little capacity is skipped":                      {seen(rooms("10Gi", "1Gi", "1023Mi")), "move data to kosmos-second tried first"},
		"a member that does not offer the class is skipped":                 {seen(rooms("10Gi", "10Gi", "")), "move data to kosmos-second tried first"},
		"a member that failed in this round is skipped":                     {seen(tried(report.AttemptedMembers{Members: failed("third")})), "move data to kosmos-second tried third,first"},
		"a node that is not ready is skipped":                               {seen(at("third", notReady)), "move data to kosmos-second tried first"},
		"a cordoned node is skipped":                                        {seen(at("third", cordoned)), "move data to kosmos-second tried first"},
		"a node with a taint that the Pod does not tolerate is skipped":     {seen(at("third", tainted)), "move data to kosmos-second tried first"},
		"a member outside the class's topology is skipped":                  {seen(func(o *observed) { o.Claim.Class.AllowedTopologies = topology("second") }), "move data to kosmos-second tried first"},
		"an empty topology term of the class allows no further member": {seen(func(o *observed) {
			o.Claim.Class.AllowedTopologies = append(topology("second"), corev1.TopologySelectorTerm{})
		}), "move data to kosmos-second tried first"},
		"the class's topology term has a label that the nodes lack":                         {seen(func(o *observed) { o.Claim.Class.AllowedTopologies = []corev1.TopologySelectorTerm{zone("")} }), "stay tried first"},
		"a member that does not admit the namespace is skipped":                             {seen(denies("third", "shop")), "move data to kosmos-second tried first"},
		"members that deny the namespace by a pattern are skipped":                          {seen(denies("third", "sh*"), denies("second", "*")), "stay tried first"},
		"a member that denies another namespace is not skipped":                             {seen(denies("third", "shops")), "move data to kosmos-third tried first"},
		"another Pod that uses the claim but is not nominated does not restrict the choice": {seen(elsewherePod), "move data to kosmos-third tried first"},
		"a Pod with a scheduling gate does not restrict the choice":                         {seen(notNominated, gatedPod), "move data to kosmos-third tried first"},

		// Claims that belong together.
		"the claims of one Pod are reassigned together":                                         {seen(sibling()), "move data,logs to kosmos-third tried first"},
		"the claims of one Pod are reassigned to a member with capacity for all of them":        {seen(sibling(siblingLarge), rooms("30Gi", "20Gi", "10Gi")), "move data,logs to kosmos-second tried first"},
		"another claim of the Pod is bound: no reassignment":                                    {seen(sibling(siblingBound)), "again in 1m0s"},
		"another claim of the Pod has a foreign class: no reassignment":                         {seen(sibling(siblingForeign)), "again in 1m0s"},
		"another claim of the Pod was reassigned: the claim follows":                            {seen(noEvidence, sibling(siblingMoved(time.Second))), "move data to kosmos-second tried first"},
		"another claim was reassigned before this one was reassigned here: this one stays (I5)": {seen(noEvidence, tried(report.AttemptedMembers{Moved: now.Unix()}), sibling(siblingMoved(time.Second))), "nothing"},
		"two claims were reassigned at the same time: the node whose name sorts last wins":      {seen(noEvidence, tried(report.AttemptedMembers{Moved: now.Unix()}), sibling(siblingMoved(0))), "move data to kosmos-second tried first"},
		"another claim was reassigned and is bound: the claim does not follow":                  {seen(noEvidence, sibling(siblingMoved(time.Second), siblingBound)), "nothing"},
		"another claim was not reassigned: it follows this one to the second member": {seen(noEvidence, annotated(route.AnnSelectedNode, "kosmos-second"), annotated(v1alpha1.AnnotationSteeredTo, "kosmos-second"),
			tried(report.AttemptedMembers{Moved: now.Unix(), Members: failed("first")}), sibling(func(c *observedClaim) {
				set(c.Root, route.AnnSelectedNode, here.NodeName)
				delete(c.Root.Annotations, v1alpha1.AnnotationSteeredTo)
				delete(c.Root.Annotations, v1alpha1.AnnotationTried)
			})),
			"move logs to kosmos-second tried first"},

		"an abandoned call may still create the volume of another claim: no reassignment":            {seen(sibling(func(c *observedClaim) { c.StillProvisioning = true })), "again in 1m0s"},
		"another claim was bound before it could follow: this one rejoins it":                        {seen(steered(time.Second), sibling(siblingBoundIn("id2"))), "move data to kosmos-second tried second"},
		"another claim is bound in another member, and this one is placed here: this one rejoins it": {seen(noEvidence, sibling(siblingBoundIn("id2"))), "move data to kosmos-second tried "},
		"both claims are bound, in different members: this one stays":                                {seen(bound, sibling(siblingBoundIn("id2"))), "nothing"},
		"another claim is bound in another member, which is already selected for this one (I5)":      {seen(annotated(route.AnnSelectedNode, "kosmos-second"), sibling(siblingBoundIn("id2"))), "nothing"},
		"the other claims are bound in two members: no member is suitable":                           {seen(noEvidence, sibling(siblingBoundIn("id2")), sibling(siblingBoundIn("id3"))), "nothing"},
		"another claim is bound in another member, and a third one here (I5)":                        {seen(noEvidence, sibling(siblingBoundIn("id2")), sibling(siblingBound)), "nothing"},
		"another claim is bound in a member without a node":                                          {seen(noEvidence, sibling(siblingBoundIn("gone"))), "nothing"},
		"another claim is bound and has a foreign class":                                             {seen(noEvidence, sibling(siblingBoundIn("id2"), siblingForeign)), "nothing"},

		// Rounds.
		"all members were tried: the scheduler can select any, and a backoff begins": {seen(tried(report.AttemptedMembers{Members: failed("second", "third")})), "free data tried second,third,first until 1m0s"},
		"all members were tried for the second time: the backoff is longer":          {seen(tried(report.AttemptedMembers{Rounds: 1, Members: failed("second", "third")})), "free data tried second,third,first until 2m0s"},
		"during the backoff, the claim stays":                                        {seen(tried(paused(30 * time.Second))), "again in 30s"},
		"after the backoff, all members can be tried again":                          {seen(tried(paused(0))), "move data to kosmos-third tried first"},
		"no other member is suitable: this is recorded":                              {seen(rooms("10Gi", "", "")), "stay tried first"},
		"no other member is suitable, and this is already recorded (I5)":             {seen(rooms("10Gi", "", ""), tried(report.AttemptedMembers{Members: failed("first")})), "again in 1m0s"},
		"another member has become suitable since":                                   {seen(rooms("10Gi", "10Gi", ""), tried(report.AttemptedMembers{Members: failed("first")})), "move data to kosmos-second tried first"},
		"all suitable members have failed: the scheduler can select any":             {seen(rooms("10Gi", "10Gi", ""), tried(report.AttemptedMembers{Members: failed("second")})), "free data tried second,first until 1m0s"},

		// Waiting does not help: only an admin can change the registration's rules.
		"the member does not admit the namespace: the claim is reassigned immediately": {seen(reason(v1alpha1.ReasonNamespaceNotAdmitted), since(0)), "move data to kosmos-third tried first"},
		"the member does not admit the namespace, and only one other member does":      {seen(reason(v1alpha1.ReasonNamespaceNotAdmitted), since(0), wants("third", "team"), labels("zone")), "move data to kosmos-second tried first"},
		"the member does not admit the namespace, but both other members do":           {seen(reason(v1alpha1.ReasonNamespaceNotAdmitted), since(0), wants("third", "team"), labels("team")), "move data to kosmos-third tried first"},
		"the member does not admit the namespace, whose labels are not known yet":      {seen(reason(v1alpha1.ReasonNamespaceNotAdmitted), since(0), wants("third", "team"), unknown), "move data to kosmos-second tried first"},
		"no member admits the namespace: the claim is not reassigned":                  {seen(reason(v1alpha1.ReasonNamespaceNotAdmitted), since(0), wants("second", "team"), wants("third", "team"), labels("zone")), "stay tried first"},
		"reassigned here, and this member does not admit the namespace either":         {seen(reason(v1alpha1.ReasonNamespaceNotAdmitted), since(0), tried(report.AttemptedMembers{Moved: now.Unix(), Members: failed("third")})), "move data to kosmos-second tried third,first"},
		"the member does not admit the namespace, and the backoff has not ended":       {seen(reason(v1alpha1.ReasonNamespaceNotAdmitted), since(0), tried(paused(30*time.Second))), "again in 30s"},
		"a conflicting namespace may be handed over: the claim waits":                  {seen(reason(v1alpha1.ReasonNamespaceConflict), since(time.Second)), "again in 1m0s"},

		// Out of space.
		"the member has been out of space for less than the timeout: the published capacity is unchanged (I8)": {seen(reason(v1alpha1.ReasonOutOfSpace), since(time.Second)), "again in 1m0s"},
		"out of space for the timeout: less capacity is published before the reassignment (I3)":                {seen(reason(v1alpha1.ReasonOutOfSpace), waited), "lower"},
		"out of space, and the Pod may only run on some of the member's nodes: only the claim is reassigned":   {seen(reason(v1alpha1.ReasonOutOfSpace), waited, func(o *observed) { confined(&o.Pods[0]) }), "move data to kosmos-third tried first"},
		"out of space, and another Pod of the claim may only run on some nodes":                                {seen(reason(v1alpha1.ReasonOutOfSpace), waited, another(confined)), "move data to kosmos-third tried first"},
		"out of space, and another Pod of the claim may run on any node":                                       {seen(reason(v1alpha1.ReasonOutOfSpace), waited, another(func(*corev1.Pod) {})), "lower"},
		"out of space, and the Pod prefers some nodes": {seen(reason(v1alpha1.ReasonOutOfSpace), waited, func(o *observed) {
			o.Pods[0].Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}}}
		}), "lower"},
		"out of space, and the Pod requires this member": {seen(reason(v1alpha1.ReasonOutOfSpace), waited, func(o *observed) {
			o.Pods[0].Spec.NodeSelector = map[string]string{"team": "red"}
			for _, p := range o.Destinations {
				p.Node.Labels["team"] = "red"
			}
		}), "lower"},
		"out of space, and the Pod has just replaced another":                          {seen(reason(v1alpha1.ReasonOutOfSpace), pushedFor(timeout-time.Second)), "move data to kosmos-third tried first"},
		"out of space, and no Pod has been pushed":                                     {seen(reason(v1alpha1.ReasonOutOfSpace)), "move data to kosmos-third tried first"},
		"out of space in a class that binds immediately, so that no Pod is pushed yet": {seen(reason(v1alpha1.ReasonOutOfSpace), func(o *observed) { o.Claim.BindsImmediately = true }), "lower"},
		"the host's PV controller has not requested the volume yet": {seen(func(o *observed) {
			delete(o.Claim.Root.Annotations, volumehelpers.AnnStorageProvisioner)
		}), "again in 1s"},
		"out of space, and the Pod has another claim of the class":                       {seen(reason(v1alpha1.ReasonOutOfSpace), waited, sibling()), "lower"},
		"out of space, and the Pod has a claim of a class that may exclude nodes":        {seen(reason(v1alpha1.ReasonOutOfSpace), waited, sibling(siblingOfAnotherClass), offersZonal), "move data,logs to kosmos-third tried first"},
		"out of space, and the Pod uses a shared volume, which may exclude nodes":        {seen(reason(v1alpha1.ReasonOutOfSpace), waited, func(o *observed) { o.Shared = []*corev1.PersistentVolume{{}} }), "move data to kosmos-third tried first"},
		"out of space in all members, for a Pod that may only run on some nodes":         {seen(reason(v1alpha1.ReasonOutOfSpace), waited, func(o *observed) { confined(&o.Pods[0]) }, tried(report.AttemptedMembers{Members: failed("second", "third")})), "free data tried second,third,first until 1m0s"},
		"freed, and selected for this member again: the next attempt begins later":       {seen(reason(v1alpha1.ReasonOutOfSpace), waited, func(o *observed) { confined(&o.Pods[0]) }, tried(paused(30*time.Second))), "again in 30s"},
		"out of space, and less capacity is published: the claim is reassigned":          {seen(reason(v1alpha1.ReasonOutOfSpace), rooms("1023Mi", "10Gi", "")), "move data to kosmos-second tried first"},
		"out of space, and the class is no longer offered here: the claim is reassigned": {seen(reason(v1alpha1.ReasonOutOfSpace), rooms("", "10Gi", "")), "move data to kosmos-second tried first"},
		"out of space, and no other member is suitable: the claim stays":                 {seen(reason(v1alpha1.ReasonOutOfSpace), rooms("10Gi", "", "")), "stay tried first"},
		"a tenant's unschedulable Pod does not reduce the capacity":                      {seen(reason(v1alpha1.ReasonPodUnschedulable), since(time.Second)), "again in 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, said(decideWhenRequested(tc.observed))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func topology(registration string) []corev1.TopologySelectorTerm {
	return []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: v1alpha1.LabelCluster, Values: []string{registration}}}}}
}

func zone(name string) corev1.TopologySelectorTerm {
	return corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{name}}}}
}

// wants makes a registration admit only namespaces with the given label.
func wants(registration, label string) func(*observed) {
	return func(o *observed) {
		for i := range o.Destinations {
			if o.Destinations[i].Registration == registration {
				o.Destinations[i].Rules = placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{
					Namespaces: v1alpha1.NamespacesSpec{MatchLabels: map[string]string{label: ""}}}})
			}
		}
	}
}

// labels gives the namespace a label.
func labels(label string) func(*observed) {
	return func(o *observed) { o.Namespace.Labels = map[string]string{label: ""} }
}

// unknown removes the namespace from the cache.
func unknown(o *observed) { o.Namespace.Known = false }

// denies makes a registration deny the namespaces that match a pattern.
func denies(registration, pattern string) func(*observed) {
	return func(o *observed) {
		for i := range o.Destinations {
			if o.Destinations[i].Registration == registration {
				o.Destinations[i].Rules = placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{
					Namespaces: v1alpha1.NamespacesSpec{Deny: &[]string{pattern}}}})
			}
		}
	}
}

// elsewherePod adds a Pod that uses the claim too, is not nominated, and can run in no member.
func elsewherePod(o *observed) {
	o.Pods = append(o.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pinned"}, Spec: corev1.PodSpec{NodeSelector: map[string]string{"no": "where"}}})
}

func gatedPod(o *observed) {
	o.Pods = append(o.Pods, corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "wait"}}}})
}
