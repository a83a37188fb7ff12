package member

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// The mapper must contain every kind that Xylem reads live, because reads of other kinds fail.
func TestMapperHasKindsReadLive(t *testing.T) {
	for kind, want := range map[string]string{"VolumeAttributesClass": "volumeattributesclasses", "StorageClass": "storageclasses", "CSIStorageCapacity": "csistoragecapacities", "VolumeAttachment": "volumeattachments"} {
		t.Run(kind, func(t *testing.T) {
			mapping, err := NewRESTMapper().RESTMapping(storagev1.SchemeGroupVersion.WithKind(kind).GroupKind(), "v1")
			if err != nil {
				t.Fatal(err)
			}
			if mapping.Resource.Resource != want {
				t.Errorf("resource is %q, want %q", mapping.Resource.Resource, want)
			}
			if root := kind != "CSIStorageCapacity"; (mapping.Scope == meta.RESTScopeRoot) != root {
				t.Errorf("scope is %s, want cluster scope: %t", mapping.Scope.Name(), root)
			}
		})
	}
}
