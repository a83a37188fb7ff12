package hostclaim

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
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func seen(change ...func(*observed)) observed {
	o := observed{
		now: now,
		claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data"},
			Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")},
		},
		class: &storagev1.StorageClass{
			ObjectMeta:        metav1.ObjectMeta{Name: "fast"},
			Provisioner:       v1alpha1.ProvisionerName,
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
		},
		members:        []placement.Candidate{offers("a")},
		memberHasClass: func(string, string) bool { return false },
		namespace:      placement.Namespace{Name: "team", Known: true},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// byAnnotation lets only the old annotation name the claim's class.
func byAnnotation(o *observed) {
	o.claim.Spec.StorageClassName, o.claim.Annotations = nil, map[string]string{corev1.BetaStorageClassAnnotation: "fast"}
}

// memberOf returns a registered member, after applying the changes.
func memberOf(name string, change ...func(*v1alpha1.ClusterRegistration, *placement.Candidate)) placement.Candidate {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cr.Spec.Node.Name, cr.Status.ClusterID = "node-"+name, "id-"+name
	var m placement.Candidate
	for _, c := range change {
		c(cr, &m)
	}
	m.Member = placement.MemberOfRegistration(cr, m.Node)
	return m
}

func connected(_ *v1alpha1.ClusterRegistration, m *placement.Candidate) { m.Connected = true }

func connecting(_ *v1alpha1.ClusterRegistration, m *placement.Candidate) { m.Connecting = true }

func withClass(_ *v1alpha1.ClusterRegistration, m *placement.Candidate) {
	m.Largest = map[string]resource.Quantity{"fast": resource.MustParse("1Gi")}
}

// refuses makes the registration reject the claim's namespace.
func refuses(cr *v1alpha1.ClusterRegistration, _ *placement.Candidate) {
	cr.Spec.Namespaces.Allow = []string{"other"}
}

func mapped(cr *v1alpha1.ClusterRegistration, _ *placement.Candidate) {
	cr.Spec.Storage.Classes = []v1alpha1.ClassMapping{{Host: "fast", Member: "gp3"}}
}

func inZone(zone string) func(*v1alpha1.ClusterRegistration, *placement.Candidate) {
	return func(_ *v1alpha1.ClusterRegistration, m *placement.Candidate) {
		m.Node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
	}
}

// onlyIn makes the class allow only one zone.
func onlyIn(zone string) func(*observed) {
	return func(o *observed) {
		o.class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: corev1.LabelTopologyZone, Values: []string{zone}}}}}
	}
}

func onNode(name string) func(*v1alpha1.ClusterRegistration, *placement.Candidate) {
	return func(cr *v1alpha1.ClusterRegistration, _ *placement.Candidate) { cr.Spec.Node.Name = name }
}

func offers(name string) placement.Candidate { return memberOf(name, connected, withClass) }

func lacks(name string) placement.Candidate { return memberOf(name, connected, mapped) }

func selected(s selectedNodeKind) func(*observed) {
	return func(o *observed) {
		o.selectedNode = s
		o.claim.Annotations = map[string]string{route.AnnSelectedNode: "worker-1"}
	}
}

func members(of ...placement.Candidate) func(*observed) { return func(o *observed) { o.members = of } }

// leaving leaves only members that are being deregistered.
func leaving(of ...placement.Candidate) func(*observed) {
	for i := range of {
		of[i].Leaving = true
	}
	return func(o *observed) { o.members, o.leaving = nil, of }
}

// having makes the given member have the class to which the claim's class is mapped.
func having(member string) func(*observed) {
	return func(o *observed) {
		o.memberHasClass = func(registration, class string) bool { return registration == member && class == "gp3" }
	}
}

// named makes the claim wait for the given volume.
func named(volume string) func(*observed) {
	return func(o *observed) { o.claim.Spec.VolumeName, o.claim.Status.Phase = volume, corev1.ClaimPending }
}

// lackingVolume makes the host lack the volume that the claim, which has the given age, names.
func lackingVolume(age time.Duration) func(*observed) {
	return func(o *observed) { o.lacksVolume, o.claim.CreationTimestamp = true, metav1.NewTime(o.now.Add(-age)) }
}

// off returns a disconnected member with the given node.
func off(name, node string) placement.Candidate {
	return memberOf(name, onNode(node))
}

func placed(cluster string) func(*observed) {
	return func(o *observed) { o.claim.Annotations[v1alpha1.AnnotationPlacedIn] = cluster }
}

// awayFor sets the claim's condition to one that has reported the member as away for the given
// duration.
func awayFor(age time.Duration) func(*observed) {
	return func(o *observed) {
		o.claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type: v1alpha1.ClaimPlaceable, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonMemberAway, LastTransitionTime: metav1.NewTime(now.Add(-age)),
		}}
	}
}

func stuck(o *observed) { o.podUnschedulable = true }

func parameter(key, value string) func(*observed) {
	return func(o *observed) { o.class.Parameters = map[string]string{key: value} }
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		reason   string // empty for no report
		says     []string
		unselect bool
		again    time.Duration
	}{
		"the claim does not exist":                                 {observed: observed{}},
		"a valid claim":                                            {observed: seen()},
		"a valid claim whose Pod cannot be scheduled":              {observed: seen(stuck)},
		"a bound claim":                                            {observed: seen(members(), func(o *observed) { o.claim.Spec.VolumeName = "v" })},
		"a claim that names an existing volume":                    {observed: seen(members(), named("v")), again: missingVolumeInterval},
		"a claim that names a volume that does not exist":          {observed: seen(named("v"), lackingVolume(missingVolumeDelay)), reason: v1alpha1.ReasonVolumeNotFound, says: []string{`"v"`}, again: missingVolumeInterval},
		"a new claim that names a volume that does not exist":      {observed: seen(named("v"), lackingVolume(missingVolumeDelay-time.Second)), again: time.Second},
		"a volume that does not exist, and a member is away":       {observed: seen(members(offers("a"), off("b", "node-b")), named("v"), lackingVolume(time.Hour)), reason: v1alpha1.ReasonVolumeNotFound, says: []string{"not connected may have such an orphan: b"}, again: missingVolumeInterval},
		"a volume that does not exist, and a member is connecting": {observed: seen(members(memberOf("a", connecting)), named("v"), lackingVolume(time.Hour)), again: missingVolumeDelay},
		"a volume that does not exist, a member is connecting, and the claim already shows it": {observed: seen(members(memberOf("a", connecting)), named("v"), lackingVolume(time.Hour), func(o *observed) {
			o.claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: v1alpha1.ClaimPlaceable, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonVolumeNotFound}}
		}), reason: v1alpha1.ReasonVolumeNotFound, again: missingVolumeInterval},
		"a volume that does not exist, and the claim is placed":                          {observed: seen(selected(virtualNode), placed("id-a"), named("v"), lackingVolume(time.Hour))},
		"a volume that does not exist, and the claim is placed in a member that is away": {observed: seen(members(off("b", "node-b")), selected(virtualNode), placed("id-b"), named("v"), lackingVolume(time.Hour)), reason: v1alpha1.ReasonMemberAway},
		"root_pvc reports why the orphan may not be requested": {observed: seen(named("v"), lackingVolume(time.Hour), func(o *observed) {
			o.claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonAdoptionUnconfirmed}}
		})},
		"a claim that is being deleted":                       {observed: seen(members(), func(o *observed) { o.claim.DeletionTimestamp = &metav1.Time{} })},
		"the claim names no class":                            {observed: seen(members(), func(o *observed) { o.claim.Spec.StorageClassName = nil })},
		"the class does not exist":                            {observed: seen(members(), func(o *observed) { o.class = nil })},
		"the class belongs to another provisioner":            {observed: seen(members(), selected(hostNode), func(o *observed) { o.class.Provisioner = "ebs.csi.aws.com" })},
		"the class binds immediately":                         {observed: seen(func(o *observed) { o.class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingImmediate) }), reason: v1alpha1.ReasonImmediate, says: []string{"fast", "WaitForFirstConsumer"}},
		"the class has no binding mode":                       {observed: seen(func(o *observed) { o.class.VolumeBindingMode = nil }), reason: v1alpha1.ReasonImmediate},
		"the class binds immediately, and a node is selected": {observed: seen(selected(hostNode), func(o *observed) { o.class.VolumeBindingMode = nil }), reason: v1alpha1.ReasonImmediate},
		"a promise": {observed: seen(parameter(v1alpha1.ParameterProvisioning, "promise"))},
		"a promise, although no member is registered":                          {observed: seen(members(), parameter(v1alpha1.ParameterProvisioning, "promise"))},
		"a promise, and the class binds immediately":                           {observed: seen(parameter(v1alpha1.ParameterProvisioning, "promise"), func(o *observed) { o.class.VolumeBindingMode = nil })},
		"a promise, but the claim has a selector":                              {observed: seen(parameter(v1alpha1.ParameterProvisioning, "promise"), func(o *observed) { o.claim.Spec.Selector = &metav1.LabelSelector{} }), reason: v1alpha1.ReasonSelectorUnsupported, says: []string{"spec.selector"}},
		"a promise, but the claim names another volume":                        {observed: seen(parameter(v1alpha1.ParameterProvisioning, "promise"), named("v")), reason: v1alpha1.ReasonVolumeNameUnsupported, says: []string{`volume "v"`}},
		"a promise class, but the claim is bound to the volume that it names":  {observed: seen(parameter(v1alpha1.ParameterProvisioning, "promise"), named("v"), func(o *observed) { o.claim.Status.Phase = corev1.ClaimBound })},
		"a promise to which the claim is being bound":                          {observed: seen(parameter(v1alpha1.ParameterProvisioning, "promise"), func(o *observed) { named(hostpv.PromiseName(o.claim.UID))(o) })},
		"the claim names a volume and waits for it":                            {observed: seen(members(), named("v")), again: missingVolumeInterval},
		"the beta annotation for the class takes precedence, as in Kubernetes": {observed: seen(func(o *observed) { o.claim.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: ""} })},
		"only the beta annotation names the class": {observed: seen(byAnnotation), reason: v1alpha1.ReasonClassInvalid, says: []string{
			"kube-scheduler 1.37 panic", `kubectl patch persistentvolumeclaim data -n team -p '{"spec":{"storageClassName":"fast"}}'`}},
		"only the beta annotation names the class, and there is a worse problem":     {observed: seen(byAnnotation, members()), reason: v1alpha1.ReasonNoMembers},
		"only the beta annotation names the class, but the scheduler chose a member": {observed: seen(selected(virtualNode), func(o *observed) { byAnnotation(o); o.claim.Annotations[route.AnnSelectedNode] = "worker-1" })},
		"the beta annotation and the field name the class, as after the remedy":      {observed: seen(byAnnotation, func(o *observed) { o.claim.Spec.StorageClassName = ptr.To("fast") })},
		"a class parameter is misspelled":                                            {observed: seen(parameter("xylem.io/memberclass", "gp3")), reason: v1alpha1.ReasonClassInvalid, says: []string{"xylem.io/memberclass"}},

		"a virtual node is selected: root_pvc reports": {observed: seen(selected(virtualNode), members(lacks("a")), stuck)},
		"a plain node is selected":                     {observed: seen(selected(hostNode)), reason: v1alpha1.ReasonSelectedNode, says: []string{"worker-1", "belongs to the host"}, unselect: true},
		"a node that does not exist is selected":       {observed: seen(selected(missingNode)), reason: v1alpha1.ReasonSelectedNode, says: []string{"worker-1", "does not exist"}, unselect: true},

		"the selected member is not connected":                                               {observed: seen(selected(virtualNode), members(off("a", "worker-1"))), reason: v1alpha1.ReasonMemberAway, says: []string{`chose member "a"`, "after 1m0s"}, again: time.Minute},
		"the selected member has been away for less than the timeout":                        {observed: seen(selected(virtualNode), members(off("a", "worker-1")), awayFor(40*time.Second)), reason: v1alpha1.ReasonMemberAway, again: 20 * time.Second},
		"the selected member has been away for the timeout":                                  {observed: seen(selected(virtualNode), members(off("a", "worker-1")), awayFor(time.Minute)), reason: v1alpha1.ReasonMemberAway, says: []string{"Xylem has created nothing there"}, unselect: true},
		"the manager has just started and is connecting to the selected member":              {observed: seen(selected(virtualNode), members(memberOf("a", connecting, onNode("worker-1"))), awayFor(time.Hour))},
		"a member that is not selected is away":                                              {observed: seen(selected(virtualNode), members(offers("b"), off("a", "worker-2")), awayFor(time.Hour))},
		"the selected member is away, and may have a volume: the selection stays (I3)":       {observed: seen(selected(virtualNode), members(off("a", "worker-1")), placed("id-a"), awayFor(time.Hour)), reason: v1alpha1.ReasonMemberAway, says: []string{"delete the claim", v1alpha1.AnnotationForceDeregister}},
		"the member in which the claim is placed, and which may have a volume, is away (I3)": {observed: seen(selected(virtualNode), members(off("a", "worker-2"), offers("b")), placed("id-a"), awayFor(time.Hour)), reason: v1alpha1.ReasonMemberAway},
		"the selected member is away, but the claim is placed in a connected member":         {observed: seen(selected(virtualNode), members(off("a", "worker-1"), offers("b")), placed("id-b"), awayFor(time.Minute)), reason: v1alpha1.ReasonMemberAway, unselect: true},

		"the member in which the claim is placed is away, and leaving":          {observed: seen(selected(virtualNode), leaving(off("a", "worker-1")), placed("id-a")), reason: v1alpha1.ReasonMemberAway, says: []string{"annotate its ClusterRegistration, which is being deleted, with " + v1alpha1.AnnotationForceDeregister}},
		"the selected member is away, and leaving":                              {observed: seen(selected(virtualNode), leaving(off("a", "worker-1")), awayFor(time.Minute)), reason: v1alpha1.ReasonMemberAway, unselect: true},
		"the only member is leaving":                                            {observed: seen(leaving(offers("a"))), reason: v1alpha1.ReasonMemberLeaving, says: []string{"Register a member"}},
		"one member offers the class, the other lacks its capacity in the host": {observed: seen(members(offers("b"), lacks("a")), having("a"), stuck), reason: v1alpha1.ReasonCapacityUnpublished, says: []string{"(b): ", `member "a" has no CSIStorageCapacity in the host`}},

		"no member is registered":                                                 {observed: seen(members()), reason: v1alpha1.ReasonNoMembers, says: []string{"ClusterRegistration"}},
		"no member is connected":                                                  {observed: seen(members(memberOf("a"), memberOf("b"))), reason: v1alpha1.ReasonNoneConnected, says: []string{"(a, b)"}},
		"the only member is being connected":                                      {observed: seen(members(memberOf("a", connecting)))},
		"the only member does not offer the class":                                {observed: seen(members(lacks("a")))},
		"no connected member offers the class, and a Pod cannot be scheduled":     {observed: seen(members(lacks("a"), memberOf("b")), stuck), reason: v1alpha1.ReasonNotOffered, says: []string{`member "a" has no StorageClass "gp3" (by a rule in spec.storage.classes of ClusterRegistration "a")`, "not connected: b"}},
		"only one of two members offers the class, and a Pod cannot be scheduled": {observed: seen(members(offers("a"), lacks("b")), stuck), reason: v1alpha1.ReasonNotOffered, says: []string{"(a): ", `"b" has no StorageClass`}},
		"the only member has the class, but no capacity in the host":              {observed: seen(members(lacks("a"), memberOf("b")), having("a"), stuck), reason: v1alpha1.ReasonCapacityUnpublished, says: []string{`member "a" has no CSIStorageCapacity in the host for class "fast"`, "events", "not connected: b"}},
		"one member lacks the class, the other its capacity in the host":          {observed: seen(members(lacks("a"), lacks("b")), having("a"), stuck), reason: v1alpha1.ReasonNotOffered, says: []string{`member "a" has no CSIStorageCapacity`, `"b" has no StorageClass`}},
		"only one of two members offers the class":                                {observed: seen(members(offers("a"), lacks("b")))},
		"one member offers the class, and the class excludes another":             {observed: seen(onlyIn("a"), members(memberOf("a", connected, withClass, inZone("a")), memberOf("b", connected, withClass, inZone("b"))), stuck), reason: v1alpha1.ReasonNotOffered, says: []string{"(a): ", `member "b" is excluded by the allowedTopologies of StorageClass "fast"`}},
		"no member admits the namespace":                                          {observed: seen(members(memberOf("a", connected, withClass, refuses), memberOf("b", refuses))), reason: v1alpha1.ReasonNamespaceNotAdmitted, says: []string{`member "a" does not admit namespace "team": no pattern of`, `member "b" does not admit namespace "team": no pattern of`, "ask an admin"}},
		"the only member does not admit the namespace, and lacks the class":       {observed: seen(members(memberOf("a", connected, mapped, refuses)), stuck), reason: v1alpha1.ReasonNamespaceNotAdmitted},
		"the only member that admits the namespace is not connected":              {observed: seen(members(memberOf("a", connected, withClass, refuses), memberOf("b"))), reason: v1alpha1.ReasonNamespaceNotAdmitted, says: []string{"not connected: b"}},
		"the only member that admits the namespace is being connected":            {observed: seen(members(memberOf("a", connected, withClass, refuses), memberOf("b", connecting)))},
		"one of two members admits the namespace":                                 {observed: seen(members(memberOf("a", connected, withClass, refuses), offers("b")), stuck)},
		"the only member that admits the namespace lacks the class":               {observed: seen(members(memberOf("a", connected, withClass, refuses), lacks("b")), stuck), reason: v1alpha1.ReasonNotOffered, says: []string{"no connected member", `"b" has no StorageClass`}},
		"many members lack the class: the message names only the first":           {observed: seen(members(lacks("a"), lacks("b"), lacks("c"), lacks("d"), lacks("e"), lacks("f"), lacks("g")), stuck), reason: v1alpha1.ReasonNotOffered, says: []string{"and 2 more"}},
		"one member offers the class, and another is not connected":               {observed: seen(members(offers("a"), memberOf("b")), stuck)},
	} {
		t.Run(name, func(t *testing.T) {
			got := decideForClaim(tc.observed)
			if got.reason != tc.reason || got.unselect != tc.unselect || got.again != tc.again {
				t.Errorf("decision is %+v, want reason %q, unselect %t, again in %s", got, tc.reason, tc.unselect, tc.again)
			}
			for _, part := range tc.says {
				if !strings.Contains(got.note, part) {
					t.Errorf("note is %q, want it to contain %q", got.note, part)
				}
			}
		})
	}
}
