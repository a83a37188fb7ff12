package placement

import (
	"slices"
	"strings"
	"unicode"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
)

// Rules are a registration's rules about what Xylem may push to its member, and how it maps
// classes.
type Rules struct {
	// classes are the exact rules, from host class to member class. prefix precedes the member
	// class's name in the names of host classes. It may be empty.
	classes map[string]string
	prefix  string
	// attributesClasses are the exact rules for VolumeAttributesClasses.
	attributesClasses map[string]string
	// snapshotClasses are the exact rules for VolumeSnapshotClasses.
	snapshotClasses map[string]string
	// allow has patterns for names of namespaces. A name must match one of them, unless allow is
	// empty. deny has patterns that a name must not match.
	allow, deny []string
	// labels are the labels that a namespace must have.
	labels map[string]string
	// restricts is set if the registration itself has rules for namespaces.
	restricts bool
	// sources are the kinds of data sources, with their groups, that the member's populators
	// support.
	sources []string
	// adopt are the leaf volumes that, by an admin's consent, claims may request by name.
	adopt []string
}

// RulesOf reads the rules of a registration, including the default ones.
func RulesOf(cr *v1alpha1.ClusterRegistration) Rules {
	rules := Rules{
		classes: exact(cr.Spec.Storage.Classes), prefix: v1alpha1.DefaultClassPrefix,
		attributesClasses: exact(cr.Spec.Storage.AttributesClasses),
		snapshotClasses:   exact(cr.Spec.Storage.SnapshotClasses),
		allow:             cr.Spec.Namespaces.Allow, deny: v1alpha1.DefaultDeniedNamespaces(), labels: cr.Spec.Namespaces.MatchLabels,
		adopt: strings.FieldsFunc(cr.Annotations[v1alpha1.AnnotationAdopt], func(c rune) bool { return c == ',' || unicode.IsSpace(c) }),
	}
	for _, kind := range cr.Spec.Storage.DataSources {
		rules.sources = append(rules.sources, datasource.Source{Group: kind.APIGroup, Kind: kind.Kind}.GroupKind())
	}
	if prefix := cr.Spec.Storage.Prefix; prefix != nil {
		rules.prefix = *prefix
	}
	if denied := cr.Spec.Namespaces.Deny; denied != nil {
		rules.deny = *denied
	}
	rules.restricts = len(rules.allow)+len(rules.labels) > 0 || cr.Spec.Namespaces.Deny != nil && len(rules.deny) > 0
	return rules
}

// RestrictsNamespaces reports whether a registration has rules for namespaces in addition to the
// default ones.
func (r Rules) RestrictsNamespaces() bool { return r.restricts }

// exact returns the exact rules, from host class to member class.
func exact(mappings []v1alpha1.ClassMapping) map[string]string {
	rules := make(map[string]string, len(mappings))
	for _, m := range mappings {
		rules[m.Host] = m.Member
	}
	return rules
}

// AdoptsAll in a registration's adopt annotation allows every volume.
const AdoptsAll = "*"

// Allows reports whether an admin allows claims to have a leaf volume of the member.
func (r Rules) Allows(volume string) bool {
	return slices.Contains(r.adopt, AdoptsAll) || slices.Contains(r.adopt, volume)
}
