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
	// remove: what is wrong cannot be changed; the watch brings us back to re-create it.
	remove
	// report: it is wrong, and not Xylem's to change.
	report
)

type decision struct {
	do    act
	after *storagev1.CSIDriver
	// wrong reports what a foreign object has wrong.
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

// decide what to do about the object, nil if there is none. Only the fields
// that the contract names are examined; the API server's defaults are theirs.
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
	immutable := len(wrong) > 0 // of these three, only this one is
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
