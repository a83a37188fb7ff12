package manager

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// answers is a RESTMapper that returns the given results in order, and repeats the last one.
type answers struct {
	meta.RESTMapper
	errs  []error
	asked func()
}

func (a *answers) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	err := a.errs[0]
	if len(a.errs) > 1 {
		a.errs = a.errs[1:]
	}
	if a.asked != nil {
		a.asked()
	}
	return &meta.RESTMapping{}, err
}

func TestServed(t *testing.T) {
	kind := v1alpha1.GroupVersion.WithKind("ClusterRegistration")
	missing, down := &meta.NoKindMatchError{GroupKind: kind.GroupKind()}, errors.New("the API server is down")
	if err := waitUntilServed(t.Context(), &answers{errs: []error{missing, nil}}, kind); err != nil {
		t.Errorf("the wait ended before the kind was served: %v", err)
	}
	if err := waitUntilServed(t.Context(), &answers{errs: []error{down}}, kind); !errors.Is(err, down) {
		t.Errorf("error is %v, want %v", err, down)
	}
	ctx, end := context.WithCancel(t.Context())
	if err := waitUntilServed(ctx, &answers{errs: []error{missing}, asked: end}, kind); !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled wait returned %v, want Canceled", err)
	}
	synctest.Test(t, func(t *testing.T) {
		err := waitUntilServed(t.Context(), &answers{errs: []error{missing}}, kind)
		if err == nil || !strings.Contains(err.Error(), "Install its CustomResourceDefinition") {
			t.Errorf("error is %v, want advice to install the CustomResourceDefinition", err)
		}
	})
}
