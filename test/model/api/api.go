// Package api contains what the API servers of the models have in common.
package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// As converts a value to a type, and panics if the value has another type.
func As[T any](value any) T {
	typed, ok := value.(T)
	if !ok {
		panic(fmt.Sprintf("%T is not a %T", value, typed))
	}
	return typed
}

// Copy returns a deep copy of an object.
func Copy[T client.Object](obj T) T { return As[T](obj.DeepCopyObject()) }

// Patch applies a merge patch to an object. there returns the current object, or an error if the
// preconditions in the patch do not hold.
func Patch[T client.Object](obj client.Object, patch client.Patch, there func(metav1.Preconditions) (T, error)) (before, after T, err error) {
	data, err := patch.Data(obj)
	if err != nil {
		return before, after, err
	}
	var sent struct{ Metadata metav1.Preconditions }
	if err := json.Unmarshal(data, &sent); err != nil {
		return before, after, err
	}
	if before, err = there(sent.Metadata); err != nil {
		return before, after, err
	}
	document, err := json.Marshal(before)
	if err != nil {
		return before, after, err
	}
	if document, err = jsonpatch.MergePatch(document, data); err != nil {
		return before, after, err
	}
	after = As[T](reflect.New(reflect.TypeOf(obj).Elem()).Interface())
	return before, after, json.Unmarshal(document, after)
}

// Preconditions returns the preconditions of a deletion.
func Preconditions(opts []client.DeleteOption) metav1.Preconditions {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	return ptr.Deref(options.Preconditions, metav1.Preconditions{})
}

// Check returns a conflict if an object does not meet the preconditions.
func Check(there client.Object, want metav1.Preconditions) error {
	if ptr.Deref(want.UID, there.GetUID()) != there.GetUID() || ptr.Deref(want.ResourceVersion, there.GetResourceVersion()) != there.GetResourceVersion() {
		return apierrors.NewConflict(resourceOf(there), there.GetName(), errors.New("the object has changed"))
	}
	return nil
}

// Find returns the object with a key, or an error like an API server's.
func Find(all []client.Object, key client.ObjectKey, like client.Object) (client.Object, error) {
	for _, obj := range all {
		if obj.GetName() == key.Name && obj.GetNamespace() == key.Namespace {
			return obj, nil
		}
	}
	return nil, NotFound(like, key.Name)
}

// Trace returns the names of the moves that lead to a world, and of the last one, which a controller would make
// there. Each world has the move and the index of the world from which it was reached, or -1.
func Trace(at int, from []int, by []string, last string) []string {
	var trace []string
	for i := at; i >= 0; i = from[i] {
		trace = append(trace, "  "+by[i])
	}
	slices.Reverse(trace)
	if last != "" {
		trace = append(trace, "  => "+last)
	}
	return trace
}

// NotFound returns the error for an object that does not exist.
func NotFound(like client.Object, name string) error {
	return apierrors.NewNotFound(resourceOf(like), name)
}

// Exists returns the error for creating an object that already exists.
func Exists(obj client.Object) error {
	return apierrors.NewAlreadyExists(resourceOf(obj), obj.GetName())
}

// Recovered calls a function, and returns a panic as an error.
func Recovered(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do()
}

// Panicked reports whether an error is from a panic, which Recovered or controller-runtime has recovered.
func Panicked(err error) bool { return err != nil && strings.Contains(err.Error(), "panic") }

func resourceOf(obj client.Object) schema.GroupResource {
	return schema.GroupResource{Resource: fmt.Sprintf("%T", obj)}
}
