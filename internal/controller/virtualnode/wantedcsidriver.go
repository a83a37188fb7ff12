package virtualnode

import (
	"fmt"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/nodes"
)

// driverAction is what to do with a CSIDriver.
type driverAction int

const (
	keepDriver driverAction = iota
	createDriver
	patchDriver
	// adjustDriver sets preventPodSchedulingIfMissing, or the rules for namespaces, even if the manager did not create
	// the object.
	adjustDriver
	// removeDriver deletes an object that differs in an immutable field. The deletion event
	// enqueues the request to re-create it.
	removeDriver
	// reportDriver emits an event on a foreign object that differs from the required one. If after is set, the
	// rules for namespaces have changed.
	reportDriver
)

type driverDecision struct {
	do    driverAction
	after *storagev1.CSIDriver
	// differs describes how a foreign object differs from the required one.
	differs string
}

// wantedDriver returns a new object. It does not set preventPodSchedulingIfMissing, which needs the
// CSINodes first.
func wantedDriver(name string) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
		},
		Spec: storagev1.CSIDriverSpec{
			AttachRequired:  ptr.To(false),
			PodInfoOnMount:  ptr.To(false),
			StorageCapacity: ptr.To(tracksCapacity(name)),
		},
	}
}

// tracksCapacity reports whether the scheduler must require a CSIStorageCapacity for the driver. The
// scheduler looks for capacity by the class's provisioner, which is csi.xylem.io even for promises.
func tracksCapacity(name string) bool { return name == v1alpha1.ProvisionerName }

// shippedDriver reports whether the chart or config/storage created the object.
func shippedDriver(driver *storagev1.CSIDriver) bool {
	return driver.Labels[appNameLabel] == appNameValue
}

const (
	appNameLabel = "app.kubernetes.io/name"
	appNameValue = "xylem"
)

// mayPreventScheduling reports whether the host's scheduler can keep Pods off nodes without the driver, and
// does not do so yet. The field is never unset, because then Pods of promises could be placed on
// host nodes.
func mayPreventScheduling(driver *storagev1.CSIDriver) bool {
	return nodes.SchedulerReadsCSINodes(driver) && !*driver.Spec.PreventPodSchedulingIfMissing
}

// decideDriver decides what to do with the object of the given name, which may be nil. complete reports
// whether all virtual nodes have a CSINode that names the driver. rules are the rules for namespaces. decideDriver
// compares only the fields that Xylem needs, because the API server sets defaults in others.
func decideDriver(name string, driver *storagev1.CSIDriver, complete bool, rules string) driverDecision {
	if driver == nil {
		after := wantedDriver(name)
		setNamespaceRules(after, rules)
		return driverDecision{do: createDriver, after: after}
	}
	onlyRules := driver.DeepCopy()
	ruled := setNamespaceRules(onlyRules, rules)
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
	set("storageCapacity", &after.Spec.StorageCapacity, tracksCapacity(name))
	others := len(wrong)
	if complete && mayPreventScheduling(driver) {
		set("preventPodSchedulingIfMissing", &after.Spec.PreventPodSchedulingIfMissing, true)
	}
	switch {
	case len(wrong) == 0 && !ruled:
		return driverDecision{}
	case len(wrong) == 0 || others == 0 && shippedDriver(driver):
		return driverDecision{do: adjustDriver, after: after}
	case driver.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue:
		d := driverDecision{do: reportDriver, differs: strings.Join(wrong, ", ")}
		if ruled {
			d.after = onlyRules
		}
		return d
	case immutable:
		return driverDecision{do: removeDriver}
	}
	return driverDecision{do: patchDriver, after: after}
}

// setNamespaceRules sets the rules for namespaces on the driver of Xylem's classes, and reports whether it changed them.
func setNamespaceRules(driver *storagev1.CSIDriver, rules string) (changed bool) {
	if !tracksCapacity(driver.Name) || driver.Annotations[v1alpha1.AnnotationNamespaceRules] == rules {
		return false
	}
	if rules == "" {
		delete(driver.Annotations, v1alpha1.AnnotationNamespaceRules)
	} else {
		metav1.SetMetaDataAnnotation(&driver.ObjectMeta, v1alpha1.AnnotationNamespaceRules, rules)
	}
	return true
}
