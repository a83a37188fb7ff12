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
	"github.com/xylem-io/xylem/internal/text"
)

// selection is what a registration asks to have published of its member's classes.
type selection struct {
	// offers by name: those that match the selector, up to the cap: what was offered
	// before goes first, so that a new class takes no other's place.
	offers map[string]Terms
	// problems are why others are not offered, first things first.
	problems []Problem
}

// Problem is why a class that a registration asks for is not published for it.
type Problem struct {
	// Reason is one of v1alpha1's of the ClassesReflected condition; Message says it
	// in words.
	Reason, Message string
}

// selectFrom a member's classes what its registration asks for; offered are the names
// of those that it offers already.
func selectFrom(classes []Class, offered map[string]bool, cr *v1alpha1.ClusterRegistration) *selection {
	s := &selection{offers: map[string]Terms{}}
	selector := labels.Everything()
	if wanted := cr.Spec.Storage.Reflect.Selector; wanted != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(wanted); err != nil {
			s.problems = []Problem{{v1alpha1.ReasonSelectorInvalid, fmt.Sprintf("spec.storage.reflect.selector: %v", err)}}
			return s
		}
	}
	member := placement.MemberOf(cr, nil)
	sorted := slices.SortedFunc(slices.Values(classes), func(a, b Class) int {
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
		if means, rule := member.ClassFor(named); means != class.Name {
			s.problems = append(s.problems, Problem{v1alpha1.ReasonReflectionConflict, fmt.Sprintf(
				"class %q: a class of that name in the host means class %q here (by %s)", class.Name, means, rule)})
			continue
		}
		if len(s.offers) == limit(cr) {
			over = append(over, class.Name)
			continue
		}
		s.offers[class.Name] = class.Terms
	}
	if len(over) > 0 {
		slices.Sort(over)
		s.problems = append(s.problems, Problem{v1alpha1.ReasonTooManyClasses, fmt.Sprintf(
			"Xylem leaves out %s, because the member has more than spec.storage.reflect.max (%d): %s. Raise it, or narrow spec.storage.reflect.selector", text.Count(len(over), "class"), limit(cr), some(over))})
	}
	return s
}

// limit is the registration's cap; one from before there was one has the default.
func limit(cr *v1alpha1.ClusterRegistration) int {
	if cr.Spec.Storage.Reflect.Max == 0 {
		return v1alpha1.DefaultMaxReflected
	}
	return int(cr.Spec.Storage.Reflect.Max)
}

// namedAtMost bounds how many classes a message names.
const namedAtMost = 5

func some(names []string) string {
	if len(names) <= namedAtMost {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namedAtMost], ", "), len(names)-namedAtMost)
}
