package precondition

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unchanged returns the delete option with a resourceVersion precondition, so that the object is
// deleted only if it has not changed since it was read.
func Unchanged(obj client.Object) client.DeleteOption {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

// Patch returns a JSON merge patch with the UID and the resourceVersion of the object from
// which it was computed.
func Patch(before client.Object) client.Patch { return patch{before} }

type patch struct{ before client.Object }

func (patch) Type() types.PatchType { return types.MergePatchType }

func (p patch) Data(after client.Object) ([]byte, error) {
	// MergeFrom omits equal fields, and would therefore omit both preconditions. So clear them in
	// the original.
	before, ok := p.before.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an API object", p.before)
	}
	before.SetUID("")
	before.SetResourceVersion("")
	after, ok = after.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an API object", p.before)
	}
	after.SetUID(p.before.GetUID())
	after.SetResourceVersion(p.before.GetResourceVersion())
	return client.MergeFrom(before).Data(after)
}
