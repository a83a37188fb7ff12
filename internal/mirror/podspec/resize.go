package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// resizableResources are the resources that the API server lets a resize change.
var resizableResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// resizableAmounts contains the amounts of a Pod's resources that a resize can change. A key consists of the
// container's name, or "" for the Pod itself, the list, and the resource: "app/limits/memory".
type resizableAmounts map[string]resource.Quantity

func resizableAmountsOf(spec *corev1.PodSpec) resizableAmounts {
	amounts := resizableAmounts{}
	visitResizableLists(spec, func(prefix string, list *corev1.ResourceList) {
		for _, name := range resizableResources {
			if amount, set := (*list)[name]; set {
				amounts[prefix+string(name)] = amount
			}
		}
	})
	return amounts
}

// asTexts returns the amounts in the form in which the push record contains them.
func (a resizableAmounts) asTexts() map[string]string {
	if len(a) == 0 {
		return nil
	}
	texts := make(map[string]string, len(a))
	for key, amount := range a {
		texts[key] = amount.String()
	}
	return texts
}

// visitResizableLists calls visit with each list of requests and limits of a Pod that has at least one
// container, including the Pod's own lists if it has any.
func visitResizableLists(spec *corev1.PodSpec, visit func(prefix string, list *corev1.ResourceList)) {
	both := func(name string, r *corev1.ResourceRequirements) {
		visit(name+"/requests/", &r.Requests)
		visit(name+"/limits/", &r.Limits)
	}
	if spec.Resources != nil {
		both("", spec.Resources)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			both(containers[i].Name, &containers[i].Resources)
		}
	}
}

// setAmounts sets amounts in the spec. It ignores those of containers that the spec lacks.
func setAmounts(spec *corev1.PodSpec, amounts resizableAmounts) {
	if spec.Resources == nil && amounts.concernPodItself() {
		spec.Resources = &corev1.ResourceRequirements{}
	}
	visitResizableLists(spec, func(prefix string, list *corev1.ResourceList) {
		for _, name := range resizableResources {
			amount, set := amounts[prefix+string(name)]
			if !set {
				continue
			}
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			(*list)[name] = amount.DeepCopy()
		}
	})
}

func (a resizableAmounts) concernPodItself() bool {
	for key := range a {
		if strings.HasPrefix(key, "/") {
			return true
		}
	}
	return false
}

// amountDriftOf returns the amounts that the root changed after the push and that the leaf lacks. The member's
// admission may have set others, which belong to the member.
func amountDriftOf(want, leaf *corev1.PodSpec, was map[string]string) resizableAmounts {
	drift := resizableAmounts{}
	has := resizableAmountsOf(leaf)
	for key, amount := range resizableAmountsOf(want) {
		if shown, set := has[key]; amount.String() != was[key] && (!set || shown.Cmp(amount) != 0) {
			drift[key] = amount
		}
	}
	if len(drift) == 0 {
		return nil
	}
	return drift
}

// recordedAmountsOf returns the amounts of a Pod for a push record. It is never nil.
func recordedAmountsOf(spec *corev1.PodSpec) map[string]string {
	if texts := resizableAmountsOf(spec).asTexts(); texts != nil {
		return texts
	}
	return map[string]string{}
}

// recordAmounts sets what the push record is to contain about resources, before the leaf is resized: the root's amounts,
// except those that drift. An unchanged record of an earlier version, which has only a digest, stays.
func (r *pushRecord) recordAmounts(was pushRecord, want *corev1.PodSpec, drift resizableAmounts) {
	r.Amounts = recordedAmountsOf(want)
	if was.Amounts == nil && was.ResourcesDigest != "" && (was.ResourcesDigest == resourcesDigestOf(want) || len(drift) > 0) {
		r.Amounts, r.ResourcesDigest = nil, was.ResourcesDigest
		return
	}
	for key := range drift {
		delete(r.Amounts, key)
		if pushed, known := was.Amounts[key]; known {
			r.Amounts[key] = pushed
		}
	}
}

// pushedAmountsOf returns the amounts that were pushed according to a record. For an unchanged record of an earlier
// version, and for one that says nothing about resources, these are the root's.
func pushedAmountsOf(was pushRecord, want *corev1.PodSpec) map[string]string {
	if was.Amounts == nil && (was.ResourcesDigest == "" || was.ResourcesDigest == resourcesDigestOf(want)) {
		return resizableAmountsOf(want).asTexts()
	}
	return was.Amounts
}

// resourcesDigestOf returns the digest of a Pod's resources that earlier versions recorded.
func resourcesDigestOf(spec *corev1.PodSpec) string {
	type podResources struct {
		Pod            *corev1.ResourceRequirements           `json:"pod,omitempty"`
		InitContainers map[string]corev1.ResourceRequirements `json:"initContainers,omitempty"`
		Containers     map[string]corev1.ResourceRequirements `json:"containers,omitempty"`
	}
	of := func(containers []corev1.Container) map[string]corev1.ResourceRequirements {
		m := make(map[string]corev1.ResourceRequirements, len(containers))
		for i := range containers {
			m[containers[i].Name] = containers[i].Resources
		}
		return m
	}
	return fields.DigestOfJSON(podResources{Pod: spec.Resources, InitContainers: of(spec.InitContainers), Containers: of(spec.Containers)})
}

// ResizePod returns a copy of the leaf with the drift's resources. outOfRange names those that Xylem must not write.
func ResizePod(leaf *corev1.Pod, d PodDrift) (resized *corev1.Pod, outOfRange []string) {
	resized = leaf.DeepCopy()
	setAmounts(&resized.Spec, d.Amounts)
	return resized, fields.QuantitiesOutOfRange(&resized.Spec, PodFieldTable.PathPrefix)
}

// RecordResize returns a copy of the resized leaf whose push record contains the root's resources. The member's
// admission may have changed what the leaf got, so only the record shows that they were pushed.
func RecordResize(root, resized *corev1.Pod) *corev1.Pod {
	record := pushRecordOf(resized)
	record.Amounts, record.ResourcesDigest = resizableAmountsOf(&root.Spec).asTexts(), ""
	resized = resized.DeepCopy()
	setPushRecord(resized, record)
	return resized
}

// AmountsNotResized lists the drift's resources that the member's admission changed during the resize.
func AmountsNotResized(resized *corev1.Pod, d PodDrift) []string {
	var changed []string
	has := resizableAmountsOf(&resized.Spec)
	for key, amount := range d.Amounts {
		if shown, set := has[key]; !set || shown.Cmp(amount) != 0 {
			changed = append(changed, describeAmount(key)+" "+shown.String()+" instead of "+amount.String())
		}
	}
	slices.Sort(changed)
	return changed
}

// describeAmount returns the name of an amount for messages.
func describeAmount(key string) string {
	container, amount, _ := strings.Cut(key, "/")
	list, name, _ := strings.Cut(amount, "/")
	if container == "" {
		return "the Pod's " + list + "." + name
	}
	return "container \"" + container + "\": " + list + "." + name
}
