package reflection

import (
	"fmt"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/wording"
)

// selection is the set of a member's classes that its registration selects.
type selection struct {
	// offers contains the terms of each offered class. The classes match the selector, up to the
	// maximum. Classes that were offered before come first, so that a new class does not displace
	// others.
	offers map[string]ClassTerms
	// problems are the reasons why other classes are not offered, the most important first.
	problems []Problem
}

// Problem explains why a selected class is not published for a registration.
type Problem struct {
	// Reason is a reason of the ClassesReflected condition, and Message explains it.
	Reason, Message string
}

// selectClasses selects from a member's classes for a registration. offered are the names that the
// registration already offers.
func selectClasses(classes []MemberClass, offered map[string]bool, cr *v1alpha1.ClusterRegistration) *selection {
	s := &selection{offers: map[string]ClassTerms{}}
	selector := labels.Everything()
	if wanted := cr.Spec.Storage.Reflect.Selector; wanted != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(wanted); err != nil {
			s.problems = []Problem{{v1alpha1.ReasonSelectorInvalid, fmt.Sprintf("all classes, because spec.storage.reflect.selector is invalid (%v)", err)}}
			return s
		}
	}
	member := placement.MemberOfRegistration(cr, nil)
	sorted := slices.SortedFunc(slices.Values(classes), func(a, b MemberClass) int {
		if offered[a.Name] != offered[b.Name] {
			if offered[a.Name] {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	var over []string
	for _, class := range sorted {
		if !selector.Matches(labels.Set(class.Labels)) {
			continue
		}
		named := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class.Name}}
		if means, rule := member.StorageClassFor(named); means != class.Name {
			s.problems = append(s.problems, Problem{v1alpha1.ReasonReflectionConflict, fmt.Sprintf(
				"class %q, because a host class with that name maps to class %q in the member (by %s)", class.Name, means, rule)})
			continue
		}
		if len(s.offers) == maxReflectedClasses(cr) {
			over = append(over, class.Name)
			continue
		}
		s.offers[class.Name] = class.ClassTerms
	}
	if len(over) > 0 {
		slices.Sort(over)
		s.problems = append(s.problems, Problem{v1alpha1.ReasonTooManyClasses, fmt.Sprintf(
			"%s (%s), because more classes match than spec.storage.reflect.max (%d) allows. Raise the maximum, or narrow spec.storage.reflect.selector", wording.CountNoun(len(over), "class"), wording.FirstNames(over, wording.NamesListed, ", "), maxReflectedClasses(cr))})
	}
	return s
}

// maxReflectedClasses returns the registration's maximum. Registrations older than the field use the default.
func maxReflectedClasses(cr *v1alpha1.ClusterRegistration) int {
	if cr.Spec.Storage.Reflect.Max == 0 {
		return v1alpha1.DefaultMaxReflected
	}
	return int(cr.Spec.Storage.Reflect.Max)
}
