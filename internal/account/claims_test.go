package account

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestClaims(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	const root = "shop/data"
	record := &coordinationv1.Lease{}
	for i := range maxRecordedClaims {
		var err error
		if record, err = RecordWithWithdrawnClaim(record, types.UID(fmt.Sprint("uid-", i)), root, now.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	again, err := RecordWithWithdrawnClaim(record, "uid-7", root, now.Add(time.Hour))
	if err != nil || again != record {
		t.Errorf("an existing claim is written again: %v", err)
	}
	full, err := RecordWithWithdrawnClaim(record, "newest", root, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	claims, err := WithdrawnClaimsInRecord(full)
	if err != nil {
		t.Fatal(err)
	}
	if _, kept := claims["uid-0"]; kept || len(claims) != maxRecordedClaims {
		t.Errorf("%d claims are recorded (including the oldest: %v), want the %d newest", len(claims), kept, maxRecordedClaims)
	}
	if diff := cmp.Diff(WithdrawnClaim{Root: root, At: now.Add(time.Hour).Unix()}, claims["newest"]); diff != "" {
		t.Error(diff)
	}
	full.Annotations[v1alpha1.AnnotationWithdrawn] = "{"
	if _, err := WithdrawnClaimsInRecord(full); err == nil {
		t.Error("an invalid record is read as empty")
	}
	if recreated, err := RecordWithWithdrawnClaim(full, "newest", root, now); err != nil || recreated.Annotations[v1alpha1.AnnotationWithdrawn] == "{" {
		t.Errorf("an invalid record is not replaced: %v, %v", recreated.Annotations, err)
	}
}

// A member's record can always be written, regardless of the size of its parts. The UIDs that
// identify volumes are dropped last.
func TestClaimsFit(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	namespace, name := strings.Repeat("n", 63), strings.Repeat("c", 249)
	uid := func(i int) types.UID { return types.UID(fmt.Sprintf("%08d-0000-0000-0000-000000000000", i)) }
	for what, tc := range map[string]struct{ letGo, others, kept int }{
		"long names": {0, 0, maxRecordedClaims},
		"long names and a long record of released volumes":         {96 << 10, 0, maxRecordedClaims},
		"long names, a long record and a large foreign annotation": {96 << 10, 100 << 10, maxRecordedClaims},
		"not even enough space for the UIDs":                       {96 << 10, 140 << 10, 1},
	} {
		t.Run(what, func(t *testing.T) {
			record := &coordinationv1.Lease{}
			record.Annotations = map[string]string{v1alpha1.AnnotationLetGo: strings.Repeat("x", tc.letGo), "team": strings.Repeat("x", tc.others)}
			claims := map[types.UID]WithdrawnClaim{}
			for i := range maxRecordedClaims {
				claims[uid(i)] = WithdrawnClaim{Root: fmt.Sprintf("%s/%s%04d", namespace, name, i), At: now.Unix() + int64(i)}
			}
			text, err := json.Marshal(claims)
			if err != nil {
				t.Fatal(err)
			}
			record.Annotations[v1alpha1.AnnotationWithdrawn] = string(text)
			for i := maxRecordedClaims; i < maxRecordedClaims+2; i++ {
				root := fmt.Sprintf("%s/%s%04d", namespace, name, i)
				if record, err = RecordWithWithdrawnClaim(record, uid(i), root, now.Add(time.Duration(i)*time.Second)); err != nil {
					t.Fatal(err)
				}
			}
			if errs := validation.ValidateAnnotations(record.Annotations, field.NewPath("metadata", "annotations")); len(errs) > 0 {
				t.Errorf("the record cannot be written: %v", errs.ToAggregate())
			}
			if claims, err = WithdrawnClaimsInRecord(record); err != nil {
				t.Fatal(err)
			}
			if len(claims) < tc.kept || tc.kept == 1 && len(claims) == maxRecordedClaims {
				t.Errorf("%d claims are kept, want %d", len(claims), tc.kept)
			}
			if _, newest := claims[uid(maxRecordedClaims+1)]; !newest {
				t.Error("the newest claim was dropped")
			}
		})
	}
}

// A member's admin can write any annotation to the fence's Lease in the member.
func TestUnusualAnnotations(t *testing.T) {
	for _, text := range []string{"", "null", "{}", "[]", "7", `{"uid":null}`} {
		record := &coordinationv1.Lease{}
		record.Annotations = map[string]string{v1alpha1.AnnotationWithdrawn: text}
		after, err := RecordWithWithdrawnClaim(record, "leaf", "shop/data", time.Unix(1_800_000_000, 0))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if claims, err := WithdrawnClaimsInRecord(after); err != nil || claims["leaf"].Root != "shop/data" {
			t.Errorf("%q: got %v, %v, want the added claim", text, claims, err)
		}
	}
}
