package guarded

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IfUnchanged returns the delete option with a resourceVersion precondition, so that the object is
// deleted only if it has not changed since it was read.
func IfUnchanged(obj client.Object) client.DeleteOption {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

// ConditionalPatch returns a JSON merge patch with the UID and the resourceVersion of the object from
// which it was computed.
func ConditionalPatch(before client.Object) client.Patch { return conditionalPatch{before} }

type conditionalPatch struct{ before client.Object }

func (conditionalPatch) Type() types.PatchType { return types.MergePatchType }

func (p conditionalPatch) Data(after client.Object) ([]byte, error) {
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
