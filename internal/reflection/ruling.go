package reflection

import (
	"fmt"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// View is all that rulings are made on.
type View struct {
	Book *Book
	// Registrations of the host, all of them.
	Registrations []v1alpha1.ClusterRegistration
}

// Ruling is what happens to one name.
type Ruling struct {
	// Offering are the registrations that offer the class together, the oldest
	// first, and Terms what they agree on. None: no class is to be there.
	Offering []Offering
	Terms    Terms
	// Problems of those that would offer it and do not, by registration.
	Problems map[string]Problem
}

// Offering is a registration that offers a class.
type Offering struct{ Registration, ClusterID string }

// Rule on a class's name; host is the class that the host has of that name, nil if
// it has none. The oldest registration that offers it decides on its terms; those
// that agree offer it too. A class that is not Xylem's is unowned to offer.
func (v View) Rule(name string, host *storagev1.StorageClass) Ruling {
	ruling := Ruling{Problems: map[string]Problem{}}
	for _, cr := range v.byAge() {
		terms, offers := v.offer(cr, name, host)
		switch {
		case !offers:
		case host != nil && !Ours(host):
			ruling.Problems[cr.Name] = Problem{v1alpha1.ReasonReflectionConflict, fmt.Sprintf(
				"class %q: the host has a class of that name, which Xylem did not create and leaves alone", name)}
		case len(ruling.Offering) > 0 && terms != ruling.Terms:
			ruling.Problems[cr.Name] = Problem{v1alpha1.ReasonReflectionConflict, fmt.Sprintf(
				"class %q: it has %s here, and %s in member %q, which was registered first", name, terms, ruling.Terms, ruling.Offering[0].Registration)}
		default:
			ruling.Terms = terms
			ruling.Offering = append(ruling.Offering, Offering{cr.Name, cr.Status.ClusterID})
		}
	}
	return ruling
}

// offer is what a registration offers of that name, if it does. One whose member
// was not seen yet offers what the host's class says that it did.
func (v View) offer(cr *v1alpha1.ClusterRegistration, name string, host *storagev1.StorageClass) (Terms, bool) {
	if !Reflects(cr) {
		return Terms{}, false
	}
	selected, known := v.Book.selectionOf(cr)
	if !known {
		return keptBy(cr, host)
	}
	terms, offers := selected.offers[name]
	return terms, offers
}

func (v View) byAge() []*v1alpha1.ClusterRegistration {
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

// Reflects reports whether a registration asks for classes to be published, and
// can: it is not leaving, and its member is known.
func Reflects(cr *v1alpha1.ClusterRegistration) bool {
	return cr.Spec.Storage.Reflect.Enabled && cr.DeletionTimestamp == nil && cr.Status.ClusterID != ""
}

// Names that a registration offers, or did by the host's classes, sorted: those on
// which something else may be ruled when it changes.
func (v View) Names(registration string, host []storagev1.StorageClass) []string {
	names := PublishedFor(registration, host)
	for i := range v.Registrations {
		if v.Registrations[i].Name != registration {
			continue
		}
		if selected, known := v.Book.selectionOf(&v.Registrations[i]); known {
			for name := range selected.offers {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// PublishedFor a registration are the names of the host's classes that say that it
// offers them.
func PublishedFor(registration string, host []storagev1.StorageClass) []string {
	var names []string
	for i := range host {
		if Ours(&host[i]) && host[i].Labels[label(registration)] != "" {
			names = append(names, host[i].Name)
		}
	}
	return names
}

// Summary is what a registration shows of its classes.
type Summary struct {
	// Published are the names of those that are, sorted.
	Published []string
	// Problems are why others are not.
	Problems []Problem
}

// Summarize what is ruled on a registration's classes; false while its member was
// not seen yet. host finds the host's class of a name, nil if there is none.
func (v View) Summarize(cr *v1alpha1.ClusterRegistration, host func(name string) *storagev1.StorageClass) (Summary, bool) {
	selected, known := v.Book.selectionOf(cr)
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
		if problem, has := v.Rule(name, host(name)).Problems[cr.Name]; has {
			s.Problems = append(s.Problems, problem)
		} else {
			s.Published = append(s.Published, name)
		}
	}
	return s, true
}

// Condition is what a summary says: whether all is published, a reason, and words.
func (s Summary) Condition() (ok bool, reason, message string) {
	if len(s.Problems) == 0 {
		message = "the member has no class that the selector matches"
		if len(s.Published) > 0 {
			message = fmt.Sprintf("published classes of the member (%d): %s", len(s.Published), some(s.Published))
		}
		return true, v1alpha1.ReasonReflected, message
	}
	said := make([]string, 0, namedAtMost)
	for _, problem := range s.Problems[:min(len(s.Problems), namedAtMost)] {
		said = append(said, problem.Message)
	}
	message = fmt.Sprintf("published classes of the member: %d. Not published: %s", len(s.Published), strings.Join(said, "; "))
	if more := len(s.Problems) - len(said); more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return false, s.Problems[0].Reason, message
}
