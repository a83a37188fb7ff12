package waitingpod

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

var now = time.Date(2026, 11, 20, 20, 49, 0, 0, time.UTC)

const gib = 1 << 30

// wantsTeam lets the first member admit only namespaces with a label.
func wantsTeam(o *observed) {
	o.members[0].Rules = placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{
		Namespaces: v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"team": ""}}}})
}

// seen returns an observation of an unschedulable Pod and of two members that could run it.
func seen(change ...func(*observed)) observed {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: v1alpha1.ProvisionerName}
	o := observed{
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
			Spec:       corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: v1alpha1.DefaultTaintKey, Operator: corev1.TolerationOpExists}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute)),
			}}},
		},
		namespace: placement.Namespace{Name: "shop", Known: true},
		claims: []observedClaim{{
			claim: &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					StorageClassName: ptr.To("fast"),
					Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
				},
			},
			class: class,
		}},
		members:        []placement.Candidate{there("a"), there("b")},
		memberHasClass: func(string, string) bool { return false },
		now:            now,
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

// there returns a connected member with 100Gi of class "fast".
func there(name string) placement.Candidate {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cr.Status.ClusterID = "id-" + name
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: cr.NodeName(), Labels: map[string]string{
			v1alpha1.LabelVirtualNode: "true", v1alpha1.LabelCluster: name, v1alpha1.LabelClusterID: "id-" + name,
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: v1alpha1.DefaultTaintKey, Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
	}
	return placement.Candidate{
		Member: placement.MemberOfRegistration(cr, node), Connection: placement.Connection{Connected: true},
		Largest: map[string]resource.Quantity{"fast": *resource.NewQuantity(100*gib, resource.BinarySI)},
	}
}

// each applies change to every member.
func each(change func(*placement.Candidate)) func(*observed) {
	return func(o *observed) {
		for i := range o.members {
			change(&o.members[i])
		}
	}
}

func away(m *placement.Candidate) {
	m.Connected = false
	m.Node.Status.Conditions = []corev1.NodeCondition{{
		Type: v1alpha1.NodeMemberAway, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonUnreachable, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
	}}
}

// repelsAll makes all nodes of the member cordoned or tainted.
func repelsAll(m *placement.Candidate) {
	m.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonNoUsableNodes}}
}

func requests(amount string) func(*observed) {
	return func(o *observed) {
		o.claims[0].claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(amount)
	}
}

// boundIn binds the claim to a volume of a member.
func boundIn(member string) func(*observed) {
	return func(o *observed) {
		o.claims[0].class, o.claims[0].volume = nil, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "v", Labels: map[string]string{v1alpha1.LabelCluster: member}},
			Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: v1alpha1.LabelClusterID, Operator: corev1.NodeSelectorOpIn, Values: []string{"id-" + member}},
				}}},
			}}},
		}
	}
}

func problem(kind corev1.PersistentVolumeClaimConditionType, reason string) func(*observed) {
	return func(o *observed) {
		o.claims[0].claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: "as reported",
		}}
	}
}

// excludes makes all virtual nodes Ready, and the scheduler report why no node fits the Pod.
func excludes(message string) func(*observed) {
	return func(o *observed) {
		o.pod.Status.Conditions[0].Message = "0/3 nodes are available: " + message + "."
		each(func(m *placement.Candidate) {
			m.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		})(o)
	}
}

func withoutClaims(o *observed) { o.claims = nil }

const (
	antiAffinity = "1 csi.xylem.io CSI driver is not installed on the node, 2 node(s) didn't match pod anti-affinity rules"
	cpu          = "3 Insufficient cpu"
)

// usable binds the claim to a volume that has a disk in member "a".
func usable(o *observed) {
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "leaf"}}
	leaf.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "vol-1"}
	c := &o.claims[0]
	c.class, c.volume = nil, hostpv.TranslateVolume(leaf, c.claim, corev1.PersistentVolumeReclaimDelete, mirror.Member{Registration: "a", ClusterID: "id-a", NodeName: there("a").NodeName, HostID: "host"})
	c.claim.Spec.VolumeName, c.claim.Status.Phase = c.volume.Name, corev1.ClaimBound
}

func scheduled(f func(*corev1.PodCondition)) func(*observed) {
	return func(o *observed) { f(&o.pod.Status.Conditions[0]) }
}

func shows(reason, message string, age time.Duration) func(*observed) {
	return func(o *observed) {
		o.pod.Status.Conditions = append(o.pod.Status.Conditions, corev1.PodCondition{
			Type: v1alpha1.PodPlaceable, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastProbeTime: metav1.NewTime(now.Add(-age)),
		})
	}
}

// pushed marks the Pod as pushed to a member.
func pushed(o *observed) {
	o.pod.Status.Conditions = append(o.pod.Status.Conditions, corev1.PodCondition{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue})
}

// selects selects a member's node for the claim.
func selects(registration string) func(*observed) {
	return func(o *observed) {
		metav1.SetMetaDataAnnotation(&o.claims[0].claim.ObjectMeta, route.AnnSelectedNode, there(registration).NodeName)
	}
}

func noTolerations(o *observed) { o.pod.Spec.Tolerations = nil }

func pod(f func(*corev1.Pod)) func(*observed) { return func(o *observed) { f(o.pod) } }

// onHost binds the Pod to a host node.
func onHost(o *observed) { o.pod.Spec.NodeName, o.onHostNode = "worker-1", true }

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		reason   string // empty if no problem is reported
		says     []string
		again    time.Duration
	}{
		"the Pod does not exist":                    {observed: observed{}},
		"both members can run the Pod":              {observed: seen()},
		"the Pod is bound to a virtual node":        {observed: seen(noTolerations, pod(func(p *corev1.Pod) { p.Spec.NodeName = "kosmos-a" }))},
		"the Pod is being deleted":                  {observed: seen(noTolerations, pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }))},
		"the Pod has a scheduling gate":             {observed: seen(noTolerations, pod(func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }))},
		"Xylem provisions none of the Pod's claims": {observed: seen(noTolerations, func(o *observed) { o.claims = nil })},
		"not processed by a scheduler yet":          {observed: seen(noTolerations, func(o *observed) { o.pod.Status.Conditions = nil })},
		"unschedulable for only two seconds": {
			observed: seen(noTolerations, scheduled(func(c *corev1.PodCondition) { c.LastTransitionTime = metav1.NewTime(now.Add(-2 * time.Second)) })),
			again:    unschedulableGrace - 2*time.Second,
		},

		"on a host node": {
			observed: seen(onHost), reason: v1alpha1.ReasonVolumeUnreachable,
			says: []string{`the volume of claim "data" cannot be mounted on node "worker-1"`, "without spec.nodeName"},
		},
		"on a host node, with a promise": {
			observed: seen(onHost, func(o *observed) {
				o.claims[0].volume = hostpv.NewPromiseFor(o.claims[0].claim, o.claims[0].class)
			}),
			reason: v1alpha1.ReasonVolumeUnreachable, says: []string{`nodeSelector xylem.io/virtual-node=true`},
		},
		"on a host node, but finished":                                  {observed: seen(onHost, pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))},
		"on a host node, but Xylem provisions none of the Pod's claims": {observed: seen(onHost, func(o *observed) { o.claims = nil })},

		"a claim that no member can provision": {
			observed: seen(problem(v1alpha1.ClaimPlaceable, v1alpha1.ReasonClassInvalid), func(o *observed) { o.pod.Status.Conditions = nil }),
			reason:   v1alpha1.ReasonClassInvalid, says: []string{`claim "data": as reported`},
		},
		"a claim that its member rejects": {
			observed: seen(problem(v1alpha1.ClaimPlaced, v1alpha1.ReasonRefusedByMember)),
			reason:   v1alpha1.ReasonRefusedByMember, says: []string{`claim "data": as reported`},
		},

		"a bound claim that cannot grow, and no other problem": {observed: seen(usable, problem(v1alpha1.ClaimPlaced, v1alpha1.ReasonRefusedByMember))},
		"a bound claim that cannot grow, and the Pod lacks a toleration": {
			observed: seen(usable, problem(v1alpha1.ClaimPlaced, v1alpha1.ReasonRefusedByMember), noTolerations),
			reason:   v1alpha1.ReasonTolerationMissing, says: []string{`the Pod cannot run where its claim "data" is: member "a"`},
		},
		"a bound claim whose member cannot run the Pod": {
			observed: seen(boundIn("a"), func(o *observed) { o.members[0].Node.Spec.Unschedulable = true }), reason: v1alpha1.ReasonCordoned,
			says: []string{"Or delete the Pod (scale down its owner), and move the claim to another member: `kubectl xylem move pvc data -n shop --to MEMBER`."},
		},
		"a bound claim whose volume is lost, and the Pod lacks a toleration": {
			observed: seen(usable, problem(v1alpha1.ClaimPlaced, v1alpha1.ReasonVolumeLost), noTolerations),
			reason:   v1alpha1.ReasonVolumeLost, says: []string{`claim "data": as reported`},
		},
		"a claim that is not bound yet to the volume that it names": {
			observed: seen(usable, problem(v1alpha1.ClaimPlaced, v1alpha1.ReasonRefusedByMember), func(o *observed) { o.claims[0].claim.Status.Phase = corev1.ClaimPending }),
			reason:   v1alpha1.ReasonRefusedByMember, says: []string{`claim "data": as reported`},
		},
		"a claim that is bound to a promise without a disk": {
			observed: seen(problem(v1alpha1.ClaimPlaced, v1alpha1.ReasonRefusedByMember), func(o *observed) {
				o.claims[0].volume = hostpv.NewPromiseFor(o.claims[0].claim, o.claims[0].class)
				o.claims[0].claim.Status.Phase = corev1.ClaimBound
			}),
			reason: v1alpha1.ReasonRefusedByMember, says: []string{`claim "data": as reported`},
		},

		"the Pod was pushed, and its member cannot provision a claim": {
			observed: seen(problem(v1alpha1.ClaimPlaced, v1alpha1.ReasonProvisioningFailed), pushed),
			reason:   v1alpha1.ReasonProvisioningFailed, says: []string{`claim "data": as reported`},
		},
		"the Pod was pushed to a member": {observed: seen(noTolerations, pushed)},

		"the Pod lacks a toleration": {
			observed: seen(noTolerations), reason: v1alpha1.ReasonTolerationMissing,
			says: []string{`member "a"`, `member "b"`, `Add to the Pod's spec: tolerations: [{key: kosmos.io/node, operator: Equal, value: "true", effect: NoSchedule}].`},
		},
		"an admin's taint on one member": {observed: seen(func(o *observed) {
			o.members[0].Node.Spec.Taints = append(o.members[0].Node.Spec.Taints, corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule})
		})},
		"no member has enough capacity": {
			observed: seen(requests("500Gi")), reason: v1alpha1.ReasonNoCapacity,
			says: []string{`member "a" has 100Gi of the 500Gi that claim "data" requests`, `member "b" has 100Gi`},
		},
		"one member has enough capacity": {observed: seen(requests("500Gi"), func(o *observed) {
			o.members[1].Largest["fast"] = *resource.NewQuantity(1<<63-1, resource.BinarySI)
		})},
		"a class that no member has": {
			observed: seen(each(func(m *placement.Candidate) { m.Largest = nil })), reason: v1alpha1.ReasonNotOffered,
			says: []string{`member "a" has no StorageClass "fast"`, "spec.storage.classes"},
		},
		"a class without capacity in the host": {
			observed: seen(each(func(m *placement.Candidate) { m.Largest = nil }), func(o *observed) {
				o.memberHasClass = func(_, class string) bool { return class == "fast" }
			}),
			reason: v1alpha1.ReasonCapacityUnpublished, says: []string{`member "a" has no CSIStorageCapacity in the host for class "fast"`, "kubectl describe clusterregistration b"},
		},
		"both members are away": {
			observed: seen(each(away)), reason: v1alpha1.ReasonMemberAway,
			says: []string{`member "a" has been away since 2026-11-20T19:49:00Z (Unreachable)`},
		},
		"one member is away, and the other is full": {
			observed: seen(requests("500Gi"), func(o *observed) { away(&o.members[0]) }), reason: v1alpha1.ReasonNoMemberFits,
			says: []string{`member "a" has been away`, `member "b" has 100Gi of the 500Gi`, "Request less"},
		},
		"the Pod excludes one member, and the other is full": {
			observed: seen(requests("500Gi"), func(o *observed) {
				o.pod.Spec.NodeSelector = map[string]string{v1alpha1.LabelCluster: "b"}
			}),
			reason: v1alpha1.ReasonNoCapacity, says: []string{`member "a" is excluded by the Pod's nodeSelector`},
		},
		"the Pod excludes all members": {
			observed: seen(func(o *observed) { o.pod.Spec.NodeSelector = map[string]string{"gpu": "yes"} }),
			reason:   v1alpha1.ReasonNodeSelectorMismatch,
		},
		"all members are cordoned": {
			observed: seen(each(func(m *placement.Candidate) { m.Node.Spec.Unschedulable = true })), reason: v1alpha1.ReasonCordoned,
			says: []string{"kubectl uncordon kosmos-a"},
		},
		"all nodes in the members are cordoned or tainted": {
			observed: seen(each(repelsAll)), reason: v1alpha1.ReasonNoUsableNodes,
			says: []string{`member "a" accepts no new Pods, because all of its Ready nodes are cordoned or tainted`, "Uncordon a node in the member", "spec.node.capacity"},
		},
		"all nodes in one member are cordoned, but its registration declares a capacity": {
			observed: seen(each(repelsAll), func(o *observed) {
				o.members[0].Node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
			}),
		},
		"no node in the members is Ready": {
			observed: seen(each(func(m *placement.Candidate) {
				away(m)
				m.Connected, m.Node.Status.Conditions[0].Reason = true, v1alpha1.ReasonNoReadyNodes
			})),
			reason: v1alpha1.ReasonNoReadyNodes, says: []string{`member "a" has had no Ready node since 2026-11-20T19:49:00Z`},
		},
		"the only member is leaving": {
			observed: seen(func(o *observed) { o.members = o.members[:1]; o.members[0].Leaving = true }),
			reason:   v1alpha1.ReasonMemberLeaving, says: []string{`member "a" is being deregistered. `, "register the member again"},
		},
		"one member is leaving, and the other is full": {
			observed: seen(requests("500Gi"), func(o *observed) { o.members[0].Leaving = true }),
			reason:   v1alpha1.ReasonNoCapacity, says: []string{`member "b" has 100Gi of the 500Gi`},
		},
		"the claim's volume is in a member that is away, and leaving": {
			observed: seen(boundIn("a"), func(o *observed) { away(&o.members[0]); o.members[0].Leaving = true }), reason: v1alpha1.ReasonMemberLeaving,
			says: []string{`the Pod cannot run where its claim "data" is: member "a" is being deregistered, and is not connected`},
		},
		"the members have no CSINode": {
			observed: seen(each(func(m *placement.Candidate) {
				m.Node.Status.Conditions = append(m.Node.Status.Conditions, corev1.NodeCondition{
					Type: v1alpha1.NodeCSINode, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonCSINodeNameTaken, Message: "as reported",
				})
			})),
			reason: v1alpha1.ReasonCSINodeNameTaken,
			says:   []string{"no CSINode", "kubectl describe node kosmos-a"},
		},
		"a namespace that is not admitted": {
			observed: seen(func(o *observed) {
				cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
				cr.Spec.Namespaces.Allow = []string{"team-*"}
				o.members = o.members[:1]
				o.members[0].Rules = placement.RulesOfRegistration(cr)
			}),
			reason: v1alpha1.ReasonNamespaceNotAdmitted, says: []string{`does not admit namespace "shop"`},
		},
		"a namespace without the labels that the only member requires": {
			observed: seen(wantsTeam, func(o *observed) { o.members = o.members[:1] }),
			reason:   v1alpha1.ReasonNamespaceNotAdmitted, says: []string{`member "a" does not admit namespace "shop": the namespace lacks the label team= of spec.namespaces.matchLabels`},
		},
		"one member excludes the namespace by labels, as the claim reports, and the other by a pattern": {
			observed: seen(wantsTeam, func(o *observed) {
				cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
				cr.Spec.Namespaces.Allow = []string{"team-*"}
				o.members[1].Rules = placement.RulesOfRegistration(cr)
				o.claims[0].claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
					Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNamespaceNotAdmitted, Message: `member "a" does not admit namespace "shop"`,
				}}
			}),
			reason: v1alpha1.ReasonNamespaceNotAdmitted,
			says:   []string{`member "a" does not admit namespace "shop": the namespace lacks the label team=`, `member "b" does not admit namespace "shop": no pattern of spec.namespaces.allow matches the name`},
		},
		"one member excludes the namespace, as the claim reports, and the members have not been read yet": {
			observed: seen(func(o *observed) {
				o.members = nil
				o.claims[0].claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
					Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNamespaceNotAdmitted, Message: `member "a" does not admit namespace "shop"`,
				}}
			}),
			reason: v1alpha1.ReasonNamespaceNotAdmitted, says: []string{`claim "data": member "a" does not admit namespace "shop"`},
		},
		"a namespace without the labels that only one of the members requires": {observed: seen(wantsTeam)},
		"a namespace with the required labels": {observed: seen(wantsTeam, func(o *observed) {
			o.members, o.namespace.Labels = o.members[:1], map[string]string{"team": ""}
		})},
		"a namespace that is not in the cache yet": {observed: seen(wantsTeam, func(o *observed) { o.members, o.namespace.Known = o.members[:1], false })},
		"an affinity that an admission policy added": {
			observed: seen(func(o *observed) {
				o.members = o.members[:1]
				o.pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.LabelCluster, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"a"}}}}}}}}
			}),
			reason: v1alpha1.ReasonNodeSelectorMismatch, says: []string{"xylem.io/cluster NotIn a", "re-create the Pod"},
		},
		"one member is still connecting": {observed: seen(noTolerations, func(o *observed) { o.members[1].Connecting = true })},

		"the claim's volume is in an away member": {
			observed: seen(boundIn("a"), func(o *observed) { away(&o.members[0]) }), reason: v1alpha1.ReasonMemberAway,
			says: []string{`the Pod cannot run where its claim "data" is: member "a" has been away since`},
		},
		"the claim's volume is in a member that is not registered": {
			observed: seen(boundIn("c")), reason: v1alpha1.ReasonVolumesApart, says: []string{`claim "data" is in member "c"`, "`kubectl xylem move`"},
		},
		"the claim's volume is in a member that can run the Pod": {observed: seen(boundIn("a"))},

		"the claim is selected for a member that the Pod's replacement excludes": {
			observed: seen(selects("a"), func(o *observed) { o.pod.Spec.NodeSelector = map[string]string{v1alpha1.LabelCluster: "b"} }),
			reason:   v1alpha1.ReasonNotScheduled, says: []string{`claim "data" is selected for member "a", which cannot run the Pod because it is excluded by the Pod's nodeSelector`, "placement-timeout"},
		},
		"the claim is selected for a member that was cordoned since": {
			observed: seen(selects("a"), func(o *observed) { o.members[0].Node.Spec.Unschedulable = true }),
			reason:   v1alpha1.ReasonNotScheduled, says: []string{"because it is cordoned"},
		},
		"the claim is selected for a member that is cordoned, and no other member can run the Pod": {
			observed: seen(selects("a"), each(func(m *placement.Candidate) { m.Node.Spec.Unschedulable = true })), reason: v1alpha1.ReasonCordoned,
		},
		"the claim is selected for a member that can run the Pod":         {observed: seen(selects("a"))},
		"the claim is selected for a member that is no longer registered": {observed: seen(selects("c"))},
		"the claim is selected for a member that is still connecting": {observed: seen(selects("a"), func(o *observed) {
			o.members[0].Node.Spec.Unschedulable, o.members[0].Connecting = true, true
		})},
		"the claim's volume is in a member that can run the Pod, and another one was selected before": {observed: seen(selects("a"), boundIn("b"), func(o *observed) {
			o.members[0].Node.Spec.Unschedulable = true
		})},

		"anti-affinity excludes the virtual nodes": {
			observed: seen(excludes(antiAffinity)), reason: v1alpha1.ReasonNoMemberFits,
			says: []string{"no node fits the Pod: the host's scheduler excludes nodes because of the Pod's anti-affinity. Register more members", "each member is one node"},
		},
		"topology spread constraints exclude the virtual nodes": {
			observed: seen(excludes("2 node(s) didn't match pod topology spread constraints")), reason: v1alpha1.ReasonNoMemberFits,
			says: []string{"because of the Pod's topology spread constraints. Use topologyKey xylem.io/cluster"},
		},
		"virtual nodes lack the label of a topology spread constraint": {
			observed: seen(excludes("2 node(s) didn't match pod topology spread constraints (missing required label)")), reason: v1alpha1.ReasonNoMemberFits,
			says: []string{"because of the Pod's topology spread constraints. Set the label", "spec.node.labels"},
		},
		"anti-affinity excludes the only member that has capacity": {
			observed: seen(excludes(antiAffinity), requests("500Gi"), func(o *observed) {
				o.members[1].Largest["fast"] = *resource.NewQuantity(1<<63-1, resource.BinarySI)
			}),
			reason: v1alpha1.ReasonNoMemberFits, says: []string{"each member is one node"},
		},
		"anti-affinity excludes the virtual nodes, and the Pod uses no claim of a member": {
			observed: seen(excludes(antiAffinity), withoutClaims), reason: v1alpha1.ReasonNoMemberFits, says: []string{"each member is one node"},
		},
		"a taint excludes the virtual nodes, and the Pod uses no claim of a member": {observed: seen(excludes(antiAffinity), withoutClaims, noTolerations)},
		"a nodeSelector excludes the virtual nodes, and the Pod uses no claim of a member": {observed: seen(excludes(antiAffinity), withoutClaims, func(o *observed) {
			o.pod.Spec.NodeSelector = map[string]string{"gpu": "yes"}
		})},
		"virtual nodes lack CPU, as the scheduler reports":              {observed: seen(excludes(cpu))},
		"nodes lack CPU, and the Pod uses no claim of a member":         {observed: seen(excludes(cpu), withoutClaims)},
		"the scheduler has nominated a node since it reported the rule": {observed: seen(excludes(antiAffinity), func(o *observed) { o.pod.Status.NominatedNodeName = "kosmos-a" })},
		"anti-affinity excluded the virtual nodes a moment ago, and the Pod uses no claim of a member": {
			observed: seen(excludes(antiAffinity), withoutClaims, func(o *observed) {
				o.pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Second))
			}),
			again: 4 * time.Second,
		},

		"the same reason with new values within a minute: not updated": {
			observed: seen(requests("500Gi"), shows(v1alpha1.ReasonNoCapacity, "as it was", 20*time.Second)),
			reason:   v1alpha1.ReasonNoCapacity, says: []string{"as it was"}, again: 40 * time.Second,
		},
		"the same reason with new values after a minute: updated": {
			observed: seen(requests("500Gi"), shows(v1alpha1.ReasonNoCapacity, "as it was", time.Minute)),
			reason:   v1alpha1.ReasonNoCapacity, says: []string{"100Gi"},
		},
		"another reason: reported immediately": {
			observed: seen(noTolerations, shows(v1alpha1.ReasonNoCapacity, "as it was", time.Second)), reason: v1alpha1.ReasonTolerationMissing,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decidePodProblem(tc.observed)
			if got.again != tc.again {
				t.Errorf("the next check is after %s, want %s", got.again, tc.again)
			}
			if got.problem == nil {
				if tc.reason != "" {
					t.Errorf("no problem is reported, want %s", tc.reason)
				}
				return
			}
			if got.problem.Reason != tc.reason {
				t.Errorf("reason is %s (%s), want %q", got.problem.Reason, got.problem.Message, tc.reason)
			}
			for _, part := range tc.says {
				if !strings.Contains(got.problem.Message, part) {
					t.Errorf("message is %q, want it to contain %q", got.problem.Message, part)
				}
			}
		})
	}
}
