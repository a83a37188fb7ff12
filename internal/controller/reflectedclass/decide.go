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
	// remake: what is another cannot be changed.
	remake
	// remove: nobody offers it.
	remove
)

type decision struct {
	do    act
	after *storagev1.StorageClass
}

// decide what to do about the host's class of a name, nil if there is none; left is
// what one that was deleted to be re-created is to come back as, nil if that is none.
func decide(name string, class, left *storagev1.StorageClass, ruling reflection.Ruling) decision {
	switch {
	case class != nil && (!reflection.Ours(class) || class.DeletionTimestamp != nil):
		return decision{} // another's, or about to go
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
		// What others have put on it stays: a default is one afterwards.
		want.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: want.Labels, Annotations: want.Annotations}
		return decision{remake, want}
	}
	return decision{patch, want}
}
