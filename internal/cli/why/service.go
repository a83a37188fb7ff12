package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/wording"
)

// Kinds that select Pods.
const (
	kindService = "Service"
	kindBudget  = "PodDisruptionBudget"
)

// selectingKinds maps what users type to kinds that select Pods.
var selectingKinds = map[string]string{
	"service": kindService, "services": kindService, "svc": kindService,
	"poddisruptionbudget": kindBudget, "poddisruptionbudgets": kindBudget, "pdb": kindBudget,
}

// parseSelecting parses KIND NAME or KIND/NAME. It returns no kind if the kind does not select Pods.
func parseSelecting(args []string) (kind, name string) {
	if len(args) == 1 {
		args = strings.SplitN(args[0], "/", 2)
	}
	if len(args) != 2 || args[1] == "" {
		return "", ""
	}
	return selectingKinds[strings.ToLower(args[0])], args[1]
}

// selection contains a Service or a PodDisruptionBudget in the host, and related objects.
type selection struct {
	*inspect.Facts

	// Exactly one of service and budget is set.
	service *corev1.Service
	budget  *policyv1.PodDisruptionBudget
	// pods are the unfinished Pods of the namespace.
	pods []corev1.Pod
	// slices are the Service's EndpointSlices.
	slices []discoveryv1.EndpointSlice
	// others are the other budgets of the namespace.
	others []policyv1.PodDisruptionBudget
	events []corev1.Event
}

// diagnoseSelection reads a Service or a PodDisruptionBudget, and returns its diagnosis.
func (o *options) diagnoseSelection(ctx context.Context, kind, name string) (*Diagnosis, error) {
	namespace, _, err := o.env.Host.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("determine the namespace: %w", err)
	}
	host, err := o.env.HostCluster()
	if err != nil {
		return nil, err
	}
	g := inspect.NewGathering(ctx, host, o.env.Clock.Now())
	s := selection{}
	var subject client.Object
	if kind == kindService {
		s.service = &corev1.Service{}
		subject = s.service
	} else {
		s.budget = &policyv1.PodDisruptionBudget{}
		subject = s.budget
	}
	if err := host.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, subject); err != nil {
		return nil, command.Explain("the host", host.Config, fmt.Errorf("read %s \"%s/%s\": %w", kind, namespace, name, err))
	}
	reader := &inspect.Reader{Reader: host, Misses: &inspect.Misses{}}
	s.pods = inspect.ReadList(ctx, reader, "Pods", &corev1.PodList{}, func(l *corev1.PodList) []corev1.Pod { return l.Items }, client.InNamespace(namespace)).Items
	s.pods = slices.DeleteFunc(s.pods, func(pod corev1.Pod) bool { return podstatus.IsPodFinished(&pod) })
	s.events = reader.ReadEvents(ctx, kind, subject)
	if s.service != nil {
		s.slices = inspect.ReadList(ctx, reader, "EndpointSlices", &discoveryv1.EndpointSliceList{}, func(l *discoveryv1.EndpointSliceList) []discoveryv1.EndpointSlice { return l.Items },
			client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name}).Items
	} else {
		s.others = inspect.ReadList(ctx, reader, "PodDisruptionBudgets", &policyv1.PodDisruptionBudgetList{}, func(l *policyv1.PodDisruptionBudgetList) []policyv1.PodDisruptionBudget { return l.Items },
			client.InNamespace(namespace)).Items
		s.others = slices.DeleteFunc(s.others, func(other policyv1.PodDisruptionBudget) bool { return other.Name == name })
	}
	s.Facts = g.GatheredFacts()
	s.Leaderless = inspect.LeaderProblem(ctx, host.Config, o.env.Namespace)
	s.Missing = append(s.Missing, reader.Misses.AllMissing()...)
	return s.diagnose(), nil
}

// diagnose returns the diagnosis.
func (s selection) diagnose() *Diagnosis {
	kind, object := kindService, metav1.Object(s.service)
	if s.budget != nil {
		kind, object = kindBudget, s.budget
	}
	root := &inspect.Node{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), Created: ptr.To(object.GetCreationTimestamp())}
	w := &walk{facts: s.Facts, root: root}
	var well string
	if s.service != nil {
		root.State, well = s.describeEndpoints(), "has endpoints for its clients"
		s.addServiceCauses(w)
	} else {
		status := s.budget.Status
		root.State = fmt.Sprintf("%d of %s healthy, %d required", status.CurrentHealthy, wording.CountNoun(int(status.ExpectedPods), "Pod"), status.DesiredHealthy)
		well = fmt.Sprintf("allows %s now", wording.CountNoun(int(status.DisruptionsAllowed), "eviction"))
		s.addBudgetCauses(w)
	}
	for i := range s.events {
		if e := &s.events[i]; e.Type == corev1.EventTypeWarning {
			w.addCause(root, stageEvent, e.Reason, inspect.Plain(e.Message), e.LastTimestamp)
		}
	}
	w.addMissingLeader()
	d := &Diagnosis{
		TypeMeta: metav1.TypeMeta{APIVersion: inspect.APIVersion, Kind: Kind}, Subject: describeSubject(root), Missing: s.Missing,
		Causes: causesOfSelection(w.causes), Evidence: appendEvidence(root, nil),
	}
	for _, pod := range s.selectedPods() {
		state := "ready"
		if !podIsReady(&pod) {
			state = "not ready"
		}
		d.Evidence = append(d.Evidence, Evidence{ObjectRef: ObjectRef{Kind: inspect.KindPod, Namespace: pod.Namespace, Name: pod.Name}, State: state + s.describePlace(&pod)})
	}
	if len(d.Causes) == 0 {
		d.Verdict, d.Summary = Well, fmt.Sprintf("%s %s (%s)", d.Subject, well, root.State)
		return d
	}
	d.Verdict, d.Summary, d.ToDo = Problem, fmt.Sprintf("%s has a problem: %s", d.Subject, d.Causes[0].What), d.Causes[0].ToDo
	return d
}

// causesOfSelection sorts causes like orderedCauses. It keeps those that have the same reason in several members, and removes
// the events that repeat them.
func causesOfSelection(causes []Cause) []Cause {
	slices.SortStableFunc(causes, func(a, b Cause) int { return cmp.Compare(a.stage, b.stage) })
	var kept []Cause
	for _, c := range causes {
		if c.stage != stageEvent || !slices.ContainsFunc(kept, func(k Cause) bool { return k.Reason == c.Reason }) {
			kept = append(kept, c)
		}
	}
	return kept
}

// selectedPods returns the Pods that the Service or budget selects. A Service without a selector selects none.
func (s selection) selectedPods() (selected []corev1.Pod) {
	matches := labels.Nothing()
	switch {
	case s.budget != nil:
		if selector, err := metav1.LabelSelectorAsSelector(s.budget.Spec.Selector); err == nil {
			matches = selector
		}
	case len(s.service.Spec.Selector) > 0:
		matches = labels.SelectorFromSet(s.service.Spec.Selector)
	}
	for i := range s.pods {
		if matches.Matches(labels.Set(s.pods[i].Labels)) {
			selected = append(selected, s.pods[i])
		}
	}
	return selected
}

// memberOf returns the registration of the member that a Pod is bound to, or nil.
func (s selection) memberOf(pod *corev1.Pod) *v1alpha1.ClusterRegistration {
	if pod.Spec.NodeName == "" {
		return nil
	}
	return s.Registration(s.MemberOfPod(&inspect.PodFacts{Pod: pod}))
}

func (s selection) describePlace(pod *corev1.Pod) string {
	if member := s.memberOf(pod); member != nil {
		return fmt.Sprintf(", in member %q", member.Name)
	}
	return ""
}

// describeEndpoints counts the ready endpoints in the host.
func (s selection) describeEndpoints() string {
	ready := 0
	for i := range s.slices {
		for _, endpoint := range s.slices[i].Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				ready++
			}
		}
	}
	return wording.CountNoun(ready, "ready endpoint") + " in the host"
}

// addServiceCauses adds why clients do not reach the Service: in the host, and in each member with Pods of its namespace.
func (s selection) addServiceCauses(w *walk) {
	add := func(reason, message string, args ...any) {
		w.addCause(w.root, stageVolume, reason, fmt.Sprintf(message, args...), metav1.Time{})
	}
	selected := s.selectedPods()
	if len(selected) == 0 && len(s.service.Spec.Selector) > 0 {
		add(v1alpha1.ReasonEndpointsInMember, "no Pod has the labels of its selector (%s). Correct the selector, or the labels of the Pods", labels.Set(s.service.Spec.Selector))
	}
	var unready []string
	for i := range selected {
		if !podIsReady(&selected[i]) {
			unready = append(unready, selected[i].Name)
		}
	}
	if len(unready) > 0 && len(unready) == len(selected) {
		add(v1alpha1.ReasonEndpointsInMember, "none of its Pods is ready (%s). See `kubectl xylem why pod %s -n %s`", wording.FirstNames(unready, wording.NamesListed, ", "), unready[0], s.service.Namespace)
	}
	seen := map[string]bool{}
	for i := range s.pods {
		if member := s.memberOf(&s.pods[i]); member != nil && !seen[member.Name] {
			seen[member.Name] = true
			s.addCausesInMember(member, selected, add)
		}
	}
}

// addCausesInMember adds why a member with Pods of the namespace lacks the Service or its endpoints.
func (s selection) addCausesInMember(member *v1alpha1.ClusterRegistration, selected []corev1.Pod, add func(reason, message string, args ...any)) {
	const absent = "Pods in member %q do not resolve its name, because "
	synced := meta.FindStatusCondition(member.Status.Conditions, v1alpha1.ConditionSynced)
	here := slices.ContainsFunc(selected, func(pod corev1.Pod) bool { return s.memberOf(&pod) == member })
	switch {
	case s.service.Annotations[v1alpha1.AnnotationReflect] == "false":
		add(v1alpha1.ReasonEndpointsInMember, absent+"it has the annotation %s=false. Remove the annotation if they need the Service", member.Name, v1alpha1.AnnotationReflect)
	case s.service.Spec.Type == corev1.ServiceTypeExternalName:
		add(v1alpha1.ReasonEndpointsInMember, absent+"Xylem does not copy Services of type ExternalName. Use %q in these Pods", member.Name, s.service.Spec.ExternalName)
	case member.Spec.Services.Reflect == v1alpha1.ReflectNoServices:
		add(v1alpha1.ReasonEndpointsInMember, absent+"spec.services.reflect of ClusterRegistration %q is None. Ask the host's admin to set it to All", member.Name, member.Name)
	case synced != nil && synced.Reason == v1alpha1.ReasonServicesForbidden:
		add(synced.Reason, absent+"the member does not let Xylem create Services. Upgrade the chart xylem-member in the member, or apply config/member there", member.Name)
	case !here && len(member.Spec.Services.Reachable) == 0:
		add(v1alpha1.ReasonEndpointsInMember, "it has no endpoints in member %q: none of its Pods runs there, and spec.services.reachable of ClusterRegistration %q is empty. If Pods in the member can reach its endpoints, ask the host's admin to add their range. Otherwise, run a Pod of the Service in the member", member.Name, member.Name)
	}
	if here && len(member.Spec.Node.PodCIDRs) == 0 {
		add(v1alpha1.ReasonEndpointsInMember, "clients outside member %q do not reach its Pods there: spec.node.podCIDRs of ClusterRegistration %q is empty, so the host does not show their addresses. If the networks are connected, ask the host's admin to set it", member.Name, member.Name)
	}
}

// addBudgetCauses adds why the budget allows no evictions, in the host and in members.
func (s selection) addBudgetCauses(w *walk) {
	add := func(at stage, reason, message string, args ...any) {
		w.addCause(w.root, at, reason, fmt.Sprintf(message, args...), metav1.Time{})
	}
	status, selected := s.budget.Status, s.selectedPods()
	allowed := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition)
	var unready []string
	for i := range selected {
		if !podIsReady(&selected[i]) {
			unready = append(unready, selected[i].Name)
		}
	}
	for i := range s.others {
		other := selection{Facts: s.Facts, budget: &s.others[i], pods: selected}
		if shared := other.selectedPods(); len(shared) > 0 {
			add(stageMissing, policyv1.SyncFailedReason, "PodDisruptionBudget %q selects Pod %q, too, and Kubernetes evicts no Pod that two budgets select. Change one of their selectors", s.others[i].Name, shared[0].Name)
		}
	}
	switch {
	case allowed != nil && allowed.Reason == policyv1.SyncFailedReason:
		add(stageVolume, policyv1.SyncFailedReason, "it allows no evictions, because Kubernetes cannot count its Pods: %s. Set spec.minAvailable to a number if the Pods have no controller", inspect.Plain(allowed.Message))
	case status.ObservedGeneration < s.budget.Generation:
		add(stageVolume, policyv1.InsufficientPodsReason, "it allows no evictions until the host's controller manager has counted its Pods. Wait, or check the controller manager")
	case len(selected) == 0:
		add(stageVolume, policyv1.InsufficientPodsReason, "it protects nothing, because no Pod has the labels of its selector. Correct the selector, or the labels of the Pods")
	case status.DisruptionsAllowed > 0:
	case len(unready) > 0:
		add(stageVolume, policyv1.InsufficientPodsReason, "it allows no evictions, because it requires %s, and has %d. Not ready: %s. See `kubectl xylem why pod %s -n %s`",
			wording.CountNoun(int(status.DesiredHealthy), "healthy Pod"), status.CurrentHealthy, wording.FirstNames(unready, wording.NamesListed, ", "), unready[0], s.budget.Namespace)
	default:
		add(stageVolume, policyv1.InsufficientPodsReason, "it allows no evictions, because it requires %s, and has %d. Add replicas, or lower the number that it requires", wording.CountNoun(int(status.DesiredHealthy), "healthy Pod"), status.CurrentHealthy)
	}
}
