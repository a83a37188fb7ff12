package account

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestWithdrawn(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	root := types.NamespacedName{Namespace: "shop", Name: "data"}
	record := &coordinationv1.Lease{}
	for i := range mostWithdrawn {
		var err error
		if record, err = WithWithdrawn(record, types.UID(fmt.Sprint("uid-", i)), root, now.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	again, err := WithWithdrawn(record, "uid-7", root, now.Add(time.Hour))
	if err != nil || again != record {
		t.Errorf("one that is there is written again: %v", err)
	}
	full, err := WithWithdrawn(record, "newest", root, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	claims, err := WithdrawnClaims(full)
	if err != nil {
		t.Fatal(err)
	}
	if _, kept := claims["uid-0"]; kept || len(claims) != mostWithdrawn {
		t.Errorf("%d claims, the oldest among them: %v", len(claims), kept)
	}
	if diff := cmp.Diff(Withdrawn{Root: "shop/data", At: now.Add(time.Hour).Unix()}, claims["newest"]); diff != "" {
		t.Error(diff)
	}
	full.Annotations[v1alpha1.AnnotationWithdrawn] = "{"
	if _, err := WithdrawnClaims(full); err == nil {
		t.Error("a record that does not parse is no empty record")
	}
	if anew, err := WithWithdrawn(full, "newest", root, now); err != nil || anew.Annotations[v1alpha1.AnnotationWithdrawn] == "{" {
		t.Errorf("begun anew: %v, %v", anew.Annotations, err)
	}
}
