package csidriver

import (
	"fmt"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/nodes"
)

type act int

const (
	nothing act = iota
	create
	patch
	// adjust sets preventPodSchedulingIfMissing, or the rules for namespaces, even if the manager did not create
	// the object.
	adjust
	// remove deletes an object that differs in an immutable field. The deletion event
	// enqueues the request to re-create it.
	remove
	// report emits an event on a foreign object that differs from the required one. If after is set, the
	// rules for namespaces have changed.
	report
)

type decision struct {
	do    act
	after *storagev1.CSIDriver
	// wrong describes how a foreign object differs from the required one.
	wrong string
}

// wanted returns a new object. It does not set preventPodSchedulingIfMissing, which needs the
// CSINodes first.
func wanted(name string) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
		},
		Spec: storagev1.CSIDriverSpec{
			AttachRequired:  ptr.To(false),
			PodInfoOnMount:  ptr.To(false),
			StorageCapacity: ptr.To(tracked(name)),
		},
	}
}

// tracked reports whether the scheduler must require a CSIStorageCapacity for the driver. The
// scheduler looks for capacity by the class's provisioner, which is csi.xylem.io even for promises.
func tracked(name string) bool { return name == v1alpha1.ProvisionerName }

// shipped reports whether the chart or config/storage created the object.
func shipped(driver *storagev1.CSIDriver) bool { return driver.Labels[labelName] == labelValue }

const (
	labelName  = "app.kubernetes.io/name"
	labelValue = "xylem"
)

// preventable reports whether the host's scheduler can keep Pods off nodes without the driver, and
// does not do so yet. The field is never unset, because then Pods of promises could be placed on
// host nodes.
func preventable(driver *storagev1.CSIDriver) bool {
	return nodes.ReadsCSINodes(driver) && !*driver.Spec.PreventPodSchedulingIfMissing
}

// decide decides what to do with the object of the given name, which may be nil. complete reports
// whether all virtual nodes have a CSINode that names the driver. rules are the rules for namespaces. decide
// compares only the fields that Xylem needs, because the API server sets defaults in others.
func decide(name string, driver *storagev1.CSIDriver, complete bool, rules string) decision {
	if driver == nil {
		after := wanted(name)
		setRules(after, rules)
		return decision{do: create, after: after}
	}
	onlyRules := driver.DeepCopy()
	ruled := setRules(onlyRules, rules)
	after := onlyRules.DeepCopy()
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
	set("storageCapacity", &after.Spec.StorageCapacity, tracked(name))
	others := len(wrong)
	if complete && preventable(driver) {
		set("preventPodSchedulingIfMissing", &after.Spec.PreventPodSchedulingIfMissing, true)
	}
	switch {
	case len(wrong) == 0 && !ruled:
		return decision{}
	case len(wrong) == 0 || others == 0 && shipped(driver):
		return decision{do: adjust, after: after}
	case driver.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue:
		d := decision{do: report, wrong: strings.Join(wrong, ", ")}
		if ruled {
			d.after = onlyRules
		}
		return d
	case immutable:
		return decision{do: remove}
	}
	return decision{do: patch, after: after}
}

// setRules sets the rules for namespaces on the driver of Xylem's classes, and reports whether it changed them.
func setRules(driver *storagev1.CSIDriver, rules string) (changed bool) {
	if !tracked(driver.Name) || driver.Annotations[v1alpha1.AnnotationNamespaceRules] == rules {
		return false
	}
	if rules == "" {
		delete(driver.Annotations, v1alpha1.AnnotationNamespaceRules)
	} else {
		metav1.SetMetaDataAnnotation(&driver.ObjectMeta, v1alpha1.AnnotationNamespaceRules, rules)
	}
	return true
}
