package reflectedclass

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/reflection"
)

type action int

const (
	doNothing action = iota
	createClass
	patchClass
	// recreateClass deletes and re-creates a class because an immutable field must change.
	recreateClass
	// deleteClass deletes a class that no member offers.
	deleteClass
)

type decision struct {
	do    action
	after *storagev1.StorageClass
}

// decideClassAction returns what to do with the host's class of the given name, which may be nil. left is a
// class that was deleted and must be re-created, or nil.
func decideClassAction(name string, class, left *storagev1.StorageClass, ruling reflection.Ruling) decision {
	switch {
	case class != nil && (!reflection.IsReflectedClass(class) || class.DeletionTimestamp != nil):
		return decision{} // foreign, or being deleted
	case len(ruling.Offering) == 0 && class == nil:
		return decision{}
	case len(ruling.Offering) == 0:
		return decision{do: deleteClass}
	}
	if class == nil {
		return decision{createClass, reflection.HostClassForRuling(name, ruling, left)}
	}
	want := reflection.HostClassForRuling(name, ruling, class)
	switch {
	case equality.Semantic.DeepEqual(class, want):
		return decision{}
	case !reflection.CanUpdateClass(class, want):
		// Keep the labels and annotations that others set, such as the annotation of a default class.
		want.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: want.Labels, Annotations: want.Annotations}
		return decision{recreateClass, want}
	}
	return decision{patchClass, want}
}
