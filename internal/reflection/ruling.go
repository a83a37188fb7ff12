package reflection

import (
	"fmt"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/wording"
)

// View is the input for rulings.
type View struct {
	Classes *MemberClasses
	// Registrations are all registrations of the host.
	Registrations []v1alpha1.ClusterRegistration
}

// Ruling is the decision on one class name.
type Ruling struct {
	// Offering are the registrations that offer the class. The first one determined the terms, and
	// Terms are the terms on which they agree. If no registration offers the class, it must not exist.
	Offering []Offering
	Terms    ClassTerms
	// Problems explain why registrations do not offer a class that they select, by registration.
	Problems map[string]Problem
}

// Offering is a registration that offers a class.
type Offering struct{ Registration, ClusterID string }

// RuleOnClass decides on a class name. host is the host class with that name, or nil. While one of the
// registrations that publish the class still offers its terms, these stand. Otherwise, a member's admin
// could take over the class of another member. If no registration offers these terms, the oldest
// registration that offers the name determines them. Registrations that agree offer the name too. If
// Xylem did not create the host class, no registration offers the name.
func (v View) RuleOnClass(name string, host *storagev1.StorageClass) Ruling {
	ruling := Ruling{Problems: map[string]Problem{}}
	order := v.registrationsByAge()
	if first := slices.IndexFunc(order, func(cr *v1alpha1.ClusterRegistration) bool { return v.keepsPublishedTerms(cr, name, host) }); first > 0 {
		keeper := order[first]
		order = slices.Insert(slices.Delete(order, first, first+1), 0, keeper)
	}
	for _, cr := range order {
		terms, offers := v.offeredTerms(cr, name, host)
		switch {
		case !offers:
		case host != nil && !IsReflectedClass(host):
			ruling.Problems[cr.Name] = Problem{v1alpha1.ReasonReflectionConflict, fmt.Sprintf(
				"class %q, because the host has a class with that name, which Xylem did not create and does not change", name)}
		case len(ruling.Offering) > 0 && terms != ruling.Terms:
			ruling.Problems[cr.Name] = Problem{v1alpha1.ReasonReflectionConflict, fmt.Sprintf(
				"class %q, because the class has %s in this member, but %s in member %q, which offered it first", name, terms, ruling.Terms, ruling.Offering[0].Registration)}
		default:
			ruling.Terms = terms
			ruling.Offering = append(ruling.Offering, Offering{cr.Name, cr.Status.ClusterID})
		}
	}
	return ruling
}

// keepsPublishedTerms reports whether a registration publishes the host class and still offers its terms.
func (v View) keepsPublishedTerms(cr *v1alpha1.ClusterRegistration, name string, host *storagev1.StorageClass) bool {
	published, publishes := publishedTermsOf(cr, host)
	terms, offers := v.offeredTerms(cr, name, host)
	return publishes && offers && terms == published
}

// offeredTerms returns the terms on which a registration offers a name, if it does. If its member has not
// been observed yet, the host class decides.
func (v View) offeredTerms(cr *v1alpha1.ClusterRegistration, name string, host *storagev1.StorageClass) (ClassTerms, bool) {
	if !IsReflectionEnabled(cr) {
		return ClassTerms{}, false
	}
	selected, known := v.Classes.selectionFor(cr)
	if !known {
		return publishedTermsOf(cr, host)
	}
	terms, offers := selected.offers[name]
	return terms, offers
}

func (v View) registrationsByAge() []*v1alpha1.ClusterRegistration {
	sorted := make([]*v1alpha1.ClusterRegistration, len(v.Registrations))
	for i := range v.Registrations {
		sorted[i] = &v.Registrations[i]
	}
	slices.SortFunc(sorted, func(a, b *v1alpha1.ClusterRegistration) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return sorted
}

// IsReflectionEnabled reports whether a registration enables reflection, is not being deleted, and has a
// known member.
func IsReflectionEnabled(cr *v1alpha1.ClusterRegistration) bool {
	return cr.Spec.Storage.Reflect.Enabled && cr.DeletionTimestamp == nil && cr.Status.ClusterID != ""
}

// ClassNamesFor returns the sorted names of classes that a registration offers, or that it offers according
// to the host classes. A change to the registration may change the rulings on them.
func (v View) ClassNamesFor(registration string, host []storagev1.StorageClass) []string {
	names := PublishedClassNames(registration, host)
	for i := range v.Registrations {
		if v.Registrations[i].Name != registration {
			continue
		}
		if selected, known := v.Classes.selectionFor(&v.Registrations[i]); known {
			for name := range selected.offers {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// PublishedClassNames returns the names of the host classes that a registration offers according to their
// labels.
func PublishedClassNames(registration string, host []storagev1.StorageClass) []string {
	var names []string
	for i := range host {
		if IsReflectedClass(&host[i]) && host[i].Labels[offeredByLabel(registration)] != "" {
			names = append(names, host[i].Name)
		}
	}
	return names
}

// Summary is the part of a registration's status that describes its classes.
type Summary struct {
	// Published are the names of the published classes, sorted.
	Published []string
	// Problems are the reasons why other classes are not published.
	Problems []Problem
}

// SummarizeRulings summarizes the rulings on a registration's classes. It returns false until the member
// has been observed. host returns the host class with a name, or nil.
func (v View) SummarizeRulings(cr *v1alpha1.ClusterRegistration, host func(name string) *storagev1.StorageClass) (Summary, bool) {
	selected, known := v.Classes.selectionFor(cr)
	if !known {
		return Summary{}, false
	}
	s := Summary{Problems: slices.Clone(selected.problems)}
	names := make([]string, 0, len(selected.offers))
	for name := range selected.offers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if problem, has := v.RuleOnClass(name, host(name)).Problems[cr.Name]; has {
			s.Problems = append(s.Problems, problem)
		} else {
			s.Published = append(s.Published, name)
		}
	}
	return s, true
}

// ConditionFields returns the summary as a condition: whether all classes are published, the reason, and
// the message.
func (s Summary) ConditionFields() (ok bool, reason, message string) {
	if len(s.Problems) == 0 {
		message = "the member has no class that the selector matches"
		if len(s.Published) > 0 {
			message = fmt.Sprintf("published classes of the member (%d): %s", len(s.Published), wording.FirstNames(s.Published, wording.NamesListed, ", "))
		}
		return true, v1alpha1.ReasonReflected, message
	}
	problems := make([]string, 0, len(s.Problems))
	for _, problem := range s.Problems {
		problems = append(problems, problem.Message)
	}
	message = fmt.Sprintf("published classes of the member: %d. Not published: %s", len(s.Published), wording.FirstNames(problems, wording.NamesListed, "; "))
	return false, s.Problems[0].Reason, message
}
