package reflectedclass

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/reflection"
)

type act int

const (
	nothing act = iota
	create
	patch
	// remake deletes and re-creates a class because an immutable field must change.
	remake
	// remove deletes a class that no member offers.
	remove
)

type decision struct {
	do    act
	after *storagev1.StorageClass
}

// decide returns what to do with the host's class of the given name, which may be nil. left is a
// class that was deleted and must be re-created, or nil.
func decide(name string, class, left *storagev1.StorageClass, ruling reflection.Ruling) decision {
	switch {
	case class != nil && (!reflection.Ours(class) || class.DeletionTimestamp != nil):
		return decision{} // foreign, or being deleted
	case len(ruling.Offering) == 0 && class == nil:
		return decision{}
	case len(ruling.Offering) == 0:
		return decision{do: remove}
	}
	if class == nil {
		return decision{create, reflection.HostClass(name, ruling, left)}
	}
	want := reflection.HostClass(name, ruling, class)
	switch {
	case equality.Semantic.DeepEqual(class, want):
		return decision{}
	case !reflection.Changeable(class, want):
		// Keep the labels and annotations that others set, such as the annotation of a default class.
		want.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: want.Labels, Annotations: want.Annotations}
		return decision{remake, want}
	}
	return decision{patch, want}
}
