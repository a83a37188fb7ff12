package config

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Share replaces the placeholders in the optional part "shared": the account may copy only volumes
// of these CSI drivers, and copies may refer only to these Secrets, whose names have the form
// <namespace>/<name>.
func Share(objects []*unstructured.Unstructured, drivers, secrets []string) error {
	if len(drivers) == 0 {
		return errors.New("share volumes: no drivers") // without names, a rule applies to all drivers
	}
	i := slices.IndexFunc(objects, func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() == "ClusterRole" && shares(obj)
	})
	if i < 0 {
		return errors.New("share volumes: the objects lack the part " + PartShared)
	}
	rules, _, err := unstructured.NestedSlice(objects[i].Object, "rules")
	if err != nil {
		return err
	}
	var granted []any
	for _, entry := range rules {
		rule, _ := entry.(map[string]any)
		names := map[string][]string{"drivers": drivers, "secrets": secrets}
		resources, _, err := unstructured.NestedStringSlice(rule, "resources")
		if err != nil {
			return err
		}
		if len(resources) == 1 {
			if of, ok := names[resources[0]]; ok && len(of) == 0 {
				continue
			} else if ok {
				if err := unstructured.SetNestedStringSlice(rule, of, "resourceNames"); err != nil {
					return err
				}
			}
		}
		granted = append(granted, rule)
	}
	return unstructured.SetNestedSlice(objects[i].Object, granted, "rules")
}
