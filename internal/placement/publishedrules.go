package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// publishedRulesLimit is the maximum size of the annotation with the rules, in bytes. The API server limits all
// annotations of an object to 256 KiB.
const publishedRulesLimit = 200 << 10

// Keys of sections that the rules have for each set of taints.
const (
	// keyAll is the key of the section with all members' names.
	keyAll = "*"
	// keyAny is the key of the section with the lines that only exclude names, or allow many.
	keyAny = "-"
	// keyName precedes the characters before the first "*" of an allowed pattern.
	keyName = "^"
	// maxNameSections is the number of allowed patterns up to which a line has a section for each of them.
	maxNameSections = 4
)

// impossibleValue takes the place of a required value that no label can have. It might contain the rules' separators, and
// so forge other members' rules.
const impossibleValue = "!"

// PublishedNamespaceRules returns the value of v1alpha1.AnnotationNamespaceRules: the rules in spec.namespaces of the
// registrations that have any. Registrations with the same rules and taints share a line with these columns, which
// are separated by tabs:
//
//   - ",<node>=<registration>,<node>=<registration>,"
//   - regular expressions for the names of the namespaces that the members allow and deny, or ""
//   - the required labels, "<key>=<value> <key>=<value>"
//   - the registrations, "<registration>,<registration>"
//
// The lines are in sections, which are separated by empty lines. The first line of a section is a set of taints, a tab and
// a key. The set contains the taints of a node, "<key> <value> <effect>;<key> <value> <effect>", without
// PreferNoSchedule. The key is a label that a namespace must have, "^" and the beginning of its name, or "-". So
// config/steering evaluates only the lines that can admit a namespace. For each set, a section with the key "*" has three
// lines: the last columns of all lines with these taints, separated by ";"; a space and the set's other keys, each with a
// space after it, but without those for names; and the keys for names, each after a space. The sets are in the first line
// of all, separated by "|".
//
// The defaults of spec.namespaces.deny are not part of the rules, because the namespaces that they exclude contain
// DaemonSets, and the scheduler would retry the bindings of their Pods forever. Rules that exceed the limit are left
// out: the scheduler then ignores them, but Xylem does not. complete reports whether the result has all rules.
func PublishedNamespaceRules(all []v1alpha1.ClusterRegistration) (rules string, complete bool) {
	members, used := map[publishedRule][]string{}, map[string]int{}
	for i := range all {
		if r := publishedRuleOf(&all[i]); r != (publishedRule{}) {
			if len(members[r]) == 0 {
				for label := range strings.FieldsSeq(r.labels) {
					used[label]++
				}
			}
			members[r] = append(members[r], all[i].NodeName()+"="+all[i].Name)
		}
	}
	complete = true
	sections, groups := map[string][]string{}, map[string][]string{} // by their first line, and by the taints
	size := 0
	for _, r := range slices.SortedFunc(maps.Keys(members), publishedRule.compare) {
		nodes := slices.Sorted(slices.Values(members[r]))
		names := make([]string, 0, len(nodes))
		for _, node := range nodes {
			names = append(names, node[strings.Index(node, "=")+1:])
		}
		group := strings.Join(names, ",")
		line := strings.Join([]string{"," + strings.Join(nodes, ",") + ",", r.allow, r.deny, r.labels, group}, "\t")
		of := r.keys(used)
		needed := len(group) + 1
		if groups[r.taints] == nil {
			needed += 2*len(r.taints) + len("|\n\n\t*\n\n \n ")
		}
		for _, key := range of {
			needed += len(line) + 1
			if sections[r.taints+"\t"+key] == nil {
				needed += len(r.taints) + 2*len(key) + len("\n\n\t\n ")
			}
		}
		if size += needed; size > publishedRulesLimit {
			size -= needed
			complete = false
			continue
		}
		groups[r.taints] = append(groups[r.taints], group)
		for _, key := range of {
			sections[r.taints+"\t"+key] = append(sections[r.taints+"\t"+key], line)
		}
	}
	if len(groups) == 0 {
		return "", complete
	}
	sets, firsts := slices.Sorted(maps.Keys(groups)), slices.Sorted(maps.Keys(sections))
	parts := []string{strings.Join(sets, "|")}
	for _, set := range sets {
		others, names := " ", []string(nil)
		for _, first := range firsts {
			key, of := strings.CutPrefix(first, set+"\t")
			if !of {
				continue
			}
			if strings.HasPrefix(key, keyName) {
				names = append(names, key)
			} else {
				others += key + " "
			}
		}
		parts = append(parts, set+"\t"+keyAll+"\n"+strings.Join(groups[set], ";")+"\n"+others+"\n "+strings.Join(names, " "))
	}
	for _, first := range firsts {
		parts = append(parts, first+"\n"+strings.Join(sections[first], "\n"))
	}
	return strings.Join(parts, "\n\n"), complete
}

// publishedRule is what registrations have in common that share a line: columns, the nodes' taints, and the beginnings of
// the names that it allows, separated by spaces.
type publishedRule struct{ allow, deny, labels, taints, beginnings string }

func (r publishedRule) compare(other publishedRule) int {
	return cmp.Or(strings.Compare(r.allow, other.allow), strings.Compare(r.deny, other.deny), strings.Compare(r.labels, other.labels), strings.Compare(r.taints, other.taints))
}

// keys returns the keys of the sections that contain the rule. Of its labels, it chooses the one that the fewest rules
// require.
func (r publishedRule) keys(used map[string]int) []string {
	if labels := strings.Fields(r.labels); len(labels) > 0 {
		return []string{slices.MinFunc(labels, func(a, b string) int { return used[a] - used[b] })}
	}
	if keys := strings.Fields(r.beginnings); len(keys) > 0 && len(keys) <= maxNameSections {
		return keys
	}
	return []string{keyAny}
}

// publishedRuleOf returns a registration's rule, which is empty if it has none.
func publishedRuleOf(cr *v1alpha1.ClusterRegistration) publishedRule {
	spec := cr.Spec.Namespaces
	var deny []string
	if spec.Deny != nil {
		deny = *spec.Deny
	}
	if len(spec.Allow)+len(deny)+len(spec.MatchLabels) == 0 {
		return publishedRule{}
	}
	var labels, taints, beginnings []string
	for _, key := range slices.Sorted(maps.Keys(spec.MatchLabels)) {
		value := spec.MatchLabels[key]
		if len(validation.IsValidLabelValue(value)) > 0 {
			value = impossibleValue
		}
		labels = append(labels, key+"="+value)
	}
	for _, t := range cr.Taints() {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			taints = append(taints, t.Key+" "+t.Value+" "+string(t.Effect))
		}
	}
	slices.Sort(taints)
	for _, pattern := range spec.Allow {
		before, _, _ := strings.Cut(pattern, "*")
		beginnings = append(beginnings, keyName+before)
	}
	slices.Sort(beginnings)
	return publishedRule{
		allow: expressionForAny(spec.Allow), deny: expressionForAny(deny), labels: strings.Join(labels, " "),
		taints: strings.Join(taints, ";"), beginnings: strings.Join(slices.Compact(beginnings), " "),
	}
}

// expressionForAny returns a regular expression that matches what one of the patterns matches. Patterns contain only
// lowercase letters, digits, "-" and "*". config/steering takes the expression apart.
func expressionForAny(patterns []string) string {
	if len(patterns) == 0 {
		return ""
	}
	return "^(" + strings.ReplaceAll(strings.Join(slices.Sorted(slices.Values(patterns)), "|"), "*", ".*") + ")$"
}
