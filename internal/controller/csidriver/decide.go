package csidriver

import (
	"fmt"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

type act int

const (
	nothing act = iota
	create
	patch
	// remove deletes an object that differs in an immutable field. The deletion event
	// enqueues the request to re-create it.
	remove
	// report emits an event on a foreign object that differs from the required one.
	report
)

type decision struct {
	do    act
	after *storagev1.CSIDriver
	// wrong describes how a foreign object differs from the required one.
	wrong string
}

func wanted() *storagev1.CSIDriver {
	return &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{
			Name:   v1alpha1.ProvisionerName,
			Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
		},
		Spec: storagev1.CSIDriverSpec{
			AttachRequired:  ptr.To(false),
			PodInfoOnMount:  ptr.To(false),
			StorageCapacity: ptr.To(true),
		},
	}
}

// decide decides what to do with the object, which may be nil. It compares only the fields
// that Xylem needs, because the API server sets defaults in others.
func decide(driver *storagev1.CSIDriver) decision {
	if driver == nil {
		return decision{do: create, after: wanted()}
	}
	after := driver.DeepCopy()
	var wrong []string
	set := func(name string, field **bool, want bool) {
		if *field == nil || **field != want {
			wrong = append(wrong, fmt.Sprintf("%s is not %t", name, want))
			*field = ptr.To(want)
		}
	}
	set("attachRequired", &after.Spec.AttachRequired, false)
	immutable := len(wrong) > 0 // only attachRequired is immutable
	set("podInfoOnMount", &after.Spec.PodInfoOnMount, false)
	set("storageCapacity", &after.Spec.StorageCapacity, true)
	switch {
	case len(wrong) == 0:
		return decision{}
	case driver.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue:
		return decision{do: report, wrong: strings.Join(wrong, ", ")}
	case immutable:
		return decision{do: remove}
	}
	return decision{do: patch, after: after}
}
