package csidriver

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// rulesLimit is the maximum size of the annotation with the rules, in bytes. The API server limits all
// annotations of an object to 256 KiB.
const rulesLimit = 200 << 10

// NamespaceRules returns the value of v1alpha1.AnnotationNamespaceRules: the rules in spec.namespaces of the
// registrations that have any. Registrations with the same rules and taints share a line with these columns, which
// are separated by tabs:
//
//   - ",<node>=<registration>,<node>=<registration>,"
//   - regular expressions for the names of the namespaces that the members allow and deny, or ""
//   - the required labels, "<key>=<value> <key>=<value>"
//   - the nodes' taints, "<key> <value> <effect>;<key> <value> <effect>", without PreferNoSchedule
//
// After an empty line, each set of taints follows once. The defaults of spec.namespaces.deny are not part of
// the rules, because the namespaces that they exclude contain DaemonSets, and the scheduler would retry the bindings
// of their Pods forever. Lines that exceed the limit are left out: the scheduler then ignores these rules, but
// Xylem does not. complete reports whether the result has all rules.
func NamespaceRules(all []v1alpha1.ClusterRegistration) (rules string, complete bool) {
	members := map[string][]string{}
	for i := range all {
		if rule := ruleOf(&all[i]); rule != "" {
			members[rule] = append(members[rule], all[i].NodeName()+"="+all[i].Name)
		}
	}
	complete = true
	var lines, taints []string
	size := 0
	for _, rule := range slices.Sorted(maps.Keys(members)) {
		set := rule[strings.LastIndex(rule, "\t")+1:]
		line := "," + strings.Join(slices.Sorted(slices.Values(members[rule])), ",") + ",\t" + rule
		if size += len(line) + len(set) + 2; size > rulesLimit {
			size -= len(line) + len(set) + 2
			complete = false
			continue
		}
		lines = append(lines, line)
		if !slices.Contains(taints, set) {
			taints = append(taints, set)
		}
	}
	if len(lines) == 0 {
		return "", complete
	}
	slices.Sort(taints)
	return strings.Join(lines, "\n") + "\n\n" + strings.Join(taints, "\n"), complete
}

// ruleOf returns the columns of a registration's line after the first one, or "" if it has no rules.
func ruleOf(cr *v1alpha1.ClusterRegistration) string {
	spec := cr.Spec.Namespaces
	var deny []string
	if spec.Deny != nil {
		deny = *spec.Deny
	}
	if len(spec.Allow)+len(deny)+len(spec.MatchLabels) == 0 {
		return ""
	}
	var labels, taints []string
	for _, key := range slices.Sorted(maps.Keys(spec.MatchLabels)) {
		labels = append(labels, key+"="+spec.MatchLabels[key])
	}
	for _, t := range cr.Taints() {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			taints = append(taints, t.Key+" "+t.Value+" "+string(t.Effect))
		}
	}
	slices.Sort(taints)
	return strings.Join([]string{expression(spec.Allow), expression(deny), strings.Join(labels, " "), strings.Join(taints, ";")}, "\t")
}

// expression returns a regular expression that matches what one of the patterns matches. Patterns contain only
// lowercase letters, digits, "-" and "*". config/steering takes the expression apart.
func expression(patterns []string) string {
	if len(patterns) == 0 {
		return ""
	}
	return "^(" + strings.ReplaceAll(strings.Join(slices.Sorted(slices.Values(patterns)), "|"), "*", ".*") + ")$"
}
