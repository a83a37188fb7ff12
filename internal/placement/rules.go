package placement

import (
	"slices"
	"strings"
	"unicode"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// Rules are a registration's rules for what Xylem may push to its member, and for how Xylem maps
// classes.
type Rules struct {
	// classes are the exact rules, from host class to member class. prefix is the prefix of host
	// class names before the member class's name. It may be empty.
	classes map[string]string
	prefix  string
	// attributesClasses are the exact rules for VolumeAttributesClasses.
	attributesClasses map[string]string
	// snapshotClasses are the exact rules for VolumeSnapshotClasses.
	snapshotClasses map[string]string
	// allow contains patterns for namespace names. A name must match one of them, unless allow is
	// empty. deny contains patterns that a name must not match.
	allow, deny []string
	// labels are the labels that a namespace must have.
	labels map[string]string
	// restrictsNamespaces is set if the registration itself has namespace rules.
	restrictsNamespaces bool
	// sources are the kinds and groups of data sources that the member's populators support.
	sources []string
	// backends are the storage backends that the member shares, by name.
	backends map[string]sharedBackend
	// adoptableVolumes are the leaf volumes that an admin allows claims to request by name.
	adoptableVolumes []string
}

// RulesOfRegistration returns a registration's rules, including the defaults.
func RulesOfRegistration(cr *v1alpha1.ClusterRegistration) Rules {
	rules := Rules{
		classes: ClassesByHostName(cr.Spec.Storage.Classes), prefix: v1alpha1.DefaultClassPrefix,
		attributesClasses: ClassesByHostName(cr.Spec.Storage.AttributesClasses),
		snapshotClasses:   ClassesByHostName(cr.Spec.Storage.SnapshotClasses),
		allow:             cr.Spec.Namespaces.Allow, deny: v1alpha1.DefaultDeniedNamespaces(), labels: cr.Spec.Namespaces.MatchLabels,
		backends:         backendsByName(cr.Spec.Storage.Shared),
		adoptableVolumes: strings.FieldsFunc(cr.Annotations[v1alpha1.AnnotationAdopt], func(c rune) bool { return c == ',' || unicode.IsSpace(c) }),
	}
	for _, kind := range cr.Spec.Storage.DataSources {
		rules.sources = append(rules.sources, mirror.DataSource{Group: kind.APIGroup, Kind: kind.Kind}.KindWithGroup())
	}
	if prefix := cr.Spec.Storage.Prefix; prefix != nil {
		rules.prefix = *prefix
	}
	if denied := cr.Spec.Namespaces.Deny; denied != nil {
		rules.deny = *denied
	}
	rules.restrictsNamespaces = len(rules.allow)+len(rules.labels) > 0 || cr.Spec.Namespaces.Deny != nil && len(rules.deny) > 0
	return rules
}

// RestrictsNamespaces reports whether a registration has namespace rules of its own, apart from the
// defaults.
func (r Rules) RestrictsNamespaces() bool { return r.restrictsNamespaces }

// ClassesByHostName returns the exact rules, from host class to member class.
func ClassesByHostName(mappings []v1alpha1.ClassMapping) map[string]string {
	rules := make(map[string]string, len(mappings))
	for _, m := range mappings {
		rules[m.Host] = m.Member
	}
	return rules
}

// AdoptAllVolumes in a registration's adopt annotation allows every volume.
const AdoptAllVolumes = "*"

// AllowsAdoption reports whether an admin allows claims to use the given leaf volume.
func (r Rules) AllowsAdoption(volume string) bool {
	return slices.Contains(r.adoptableVolumes, AdoptAllVolumes) || slices.Contains(r.adoptableVolumes, volume)
}
