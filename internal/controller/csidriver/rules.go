package csidriver

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// rulesLimit is the maximum size of the annotation with the rules, in bytes. The API server limits all
// annotations of an object to 256 KiB.
const rulesLimit = 200 << 10

// Keys of sections that the rules have for each set of taints.
const (
	// keyAll is the key of the section with all members' names.
	keyAll = "*"
	// keyAny is the key of the section with the lines that only exclude names.
	keyAny = ""
	// keyName precedes the characters before the first "*" of an allowed pattern.
	keyName = "^"
)

// impossible takes the place of a required value that no label can have. It might contain the rules' separators, and
// so forge other members' rules.
const impossible = "!"

// NamespaceRules returns the value of v1alpha1.AnnotationNamespaceRules: the rules in spec.namespaces of the
// registrations that have any. Registrations with the same rules and taints share a line with these columns, which
// are separated by tabs:
//
//   - ",<node>=<registration>,<node>=<registration>,"
//   - regular expressions for the names of the namespaces that the members allow and deny, or ""
//   - the required labels, "<key>=<value> <key>=<value>"
//   - the registrations, "<registration>,<registration>"
//
// After an empty line, the sets of taints follow, separated by "|", each with the taints of a node, "<key> <value>
// <effect>;<key> <value> <effect>", without PreferNoSchedule. Then follow sections of two lines each, after an empty
// line: a set of taints, a tab and a key; and what the section contains. With the key "*", these are the last columns of
// all lines with these taints, separated by ";". With other keys, it names the lines that can admit a namespace, by
// their first "<node>=<registration>", separated by " ": the key is a label that the namespace has, "^" and the
// beginning of its name, or "". So config/steering evaluates only a few lines, although CEL has no index.
//
// The defaults of spec.namespaces.deny are not part of the rules, because the namespaces that they exclude contain
// DaemonSets, and the scheduler would retry the bindings of their Pods forever. Lines that exceed the limit are left
// out: the scheduler then ignores these rules, but Xylem does not. complete reports whether the result has all rules.
func NamespaceRules(all []v1alpha1.ClusterRegistration) (rules string, complete bool) {
	members := map[rule][]string{}
	for i := range all {
		if r := ruleOf(&all[i]); r != (rule{}) {
			members[r] = append(members[r], all[i].NodeName()+"="+all[i].Name)
		}
	}
	complete = true
	var lines []string
	sections := map[string][]string{} // by their first line
	sets := map[string]bool{}
	size := 0
	for _, r := range slices.SortedFunc(maps.Keys(members), func(a, b rule) int { return strings.Compare(a.text+a.taints, b.text+b.taints) }) {
		nodes := slices.Sorted(slices.Values(members[r]))
		names := make([]string, 0, len(nodes))
		for _, node := range nodes {
			names = append(names, node[strings.Index(node, "=")+1:])
		}
		group := strings.Join(names, ",")
		line := "," + strings.Join(nodes, ",") + ",\t" + r.text + "\t" + group
		keys := strings.Split(r.keys, "\n")
		needed := len(line) + len(group) + 2*len(r.taints) + len("\n;|\n\n\t*\n")
		for _, key := range keys {
			needed += len(r.taints) + len(key) + len(nodes[0]) + len("\n\n\t\n ")
		}
		if size += needed; size > rulesLimit {
			size -= needed
			complete = false
			continue
		}
		lines, sets[r.taints] = append(lines, line), true
		whole := r.taints + "\t" + keyAll
		sections[whole] = append(sections[whole], group)
		for _, key := range keys {
			sections[r.taints+"\t"+key] = append(sections[r.taints+"\t"+key], nodes[0])
		}
	}
	if len(lines) == 0 {
		return "", complete
	}
	parts := []string{strings.Join(lines, "\n"), strings.Join(slices.Sorted(maps.Keys(sets)), "|")}
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		separator := " "
		if strings.HasSuffix(section, "\t"+keyAll) {
			separator = ";"
		}
		parts = append(parts, section+"\n"+strings.Join(sections[section], separator))
	}
	return strings.Join(parts, "\n\n"), complete
}

// rule is what registrations have in common that share a line.
type rule struct {
	// text contains the columns for names and labels, and taints the nodes' taints.
	text, taints string
	// keys are the keys of the sections that name the line, separated by newlines.
	keys string
}

// ruleOf returns a registration's rule, which is empty if it has none.
func ruleOf(cr *v1alpha1.ClusterRegistration) rule {
	spec := cr.Spec.Namespaces
	var deny []string
	if spec.Deny != nil {
		deny = *spec.Deny
	}
	if len(spec.Allow)+len(deny)+len(spec.MatchLabels) == 0 {
		return rule{}
	}
	var labels, taints []string
	for _, key := range slices.Sorted(maps.Keys(spec.MatchLabels)) {
		value := spec.MatchLabels[key]
		if len(validation.IsValidLabelValue(value)) > 0 {
			value = impossible
		}
		labels = append(labels, key+"="+value)
	}
	for _, t := range cr.Taints() {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			taints = append(taints, t.Key+" "+t.Value+" "+string(t.Effect))
		}
	}
	slices.Sort(taints)
	keys := []string{keyAny}
	switch {
	case len(labels) > 0:
		keys = labels[:1]
	case len(spec.Allow) > 0:
		keys = nil
		for _, pattern := range spec.Allow {
			before, _, _ := strings.Cut(pattern, "*")
			keys = append(keys, keyName+before)
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
	}
	return rule{
		text:   strings.Join([]string{expression(spec.Allow), expression(deny), strings.Join(labels, " ")}, "\t"),
		taints: strings.Join(taints, ";"), keys: strings.Join(keys, "\n"),
	}
}

// expression returns a regular expression that matches what one of the patterns matches. Patterns contain only
// lowercase letters, digits, "-" and "*". config/steering takes the expression apart.
func expression(patterns []string) string {
	if len(patterns) == 0 {
		return ""
	}
	return "^(" + strings.ReplaceAll(strings.Join(slices.Sorted(slices.Values(patterns)), "|"), "*", ".*") + ")$"
}
