package doctor

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
)

func TestCheck(t *testing.T) {
	type permissions = []authorizationv1.ResourceAttributes
	get := authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}
	list := authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}
	escalate := authorizationv1.ResourceAttributes{Verb: "escalate", Resource: "roles"}
	bind := authorizationv1.ResourceAttributes{Verb: "bind", Resource: "roles"}
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		has  permissions
		err  error
		want Rights
	}{
		"exactly the needed permissions":  {has: permissions{get, list}, want: Rights{Read: true}},
		"a needed one is missing":         {has: permissions{list}, want: Rights{Read: true, Lacks: permissions{get}}},
		"an excessive one":                {has: permissions{get, list, bind}, want: Rights{Read: true, Excess: permissions{bind}}},
		"the API server does not respond": {err: down},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reviewRights(t.Context(), permissions{get, list}, permissions{escalate, bind}, func(_ context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
				if slices.Contains(tc.has, a) {
					return true, nil
				}
				return false, tc.err
			})
			if !errors.Is(err, tc.err) {
				t.Fatalf("error is %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
