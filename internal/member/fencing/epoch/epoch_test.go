package epoch

import (
	"math"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestDisagreement(t *testing.T) {
	for name, tc := range map[string]struct {
		there, here, next int64
		confirmed         string
		want              string
	}{
		"the first leadership":                                             {want: ""},
		"the first leadership, after a crash":                              {next: 1, want: ""},
		"the epochs agree":                                                 {there: 3, here: 3, want: ""},
		"equal epochs, and an intended epoch remains (I6)":                 {there: 3, here: 3, next: 4, want: ""},
		"the member has the intended epoch (I6)":                           {there: 4, here: 3, next: 4, want: ""},
		"the host was restored (I2)":                                       {there: 5, here: 3, want: v1alpha1.ReasonHostRestored},
		"the host was restored to a state with an intended epoch (I2)":     {there: 5, here: 3, next: 4, want: v1alpha1.ReasonHostRestored},
		"the host has no record (I2)":                                      {there: 5, want: v1alpha1.ReasonHostRestored},
		"the member was restored (I2)":                                     {there: 3, here: 5, want: v1alpha1.ReasonMemberRestored},
		"the member was restored, and the host has an intended epoch (I2)": {there: 3, here: 5, next: 6, want: v1alpha1.ReasonMemberRestored},
		"the member has no Lease (I2)":                                     {here: 5, want: v1alpha1.ReasonMemberRestored},
		"the member has no Lease, and the host has an intended epoch":      {here: 5, next: 6, want: v1alpha1.ReasonMemberRestored},
		"confirmed": {there: 3, here: 5, confirmed: "host-5-member-3", want: ""},
		"the confirmation of another restore (I2)":         {there: 3, here: 6, confirmed: "host-5-member-3", want: v1alpha1.ReasonMemberRestored},
		"the confirmation of the opposite restore (I2)":    {there: 5, here: 3, confirmed: "host-5-member-3", want: v1alpha1.ReasonHostRestored},
		"a hostile member with the highest possible epoch": {there: math.MaxInt64, here: 3, want: v1alpha1.ReasonHostRestored},
	} {
		t.Run(name, func(t *testing.T) {
			p := Disagreement(tc.there, tc.here, tc.next, tc.confirmed)
			got := ""
			if p != nil {
				got = p.Reason
				if !strings.Contains(p.Message, v1alpha1.AnnotationConfirmRestore+"=host-") {
					t.Errorf("message %q does not explain how to confirm", p.Message)
				}
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestOf(t *testing.T) {
	of := func(value string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationFenceEpoch: value}}}
	}
	for name, tc := range map[string]struct {
		lease *coordinationv1.Lease
		want  int64
	}{
		"no lease":           {nil, 0},
		"no annotation":      {&coordinationv1.Lease{}, 0},
		"a number":           {of("42"), 42},
		"not a number":       {of("many"), 0},
		"a negative number":  {of("-1"), 0},
		"too large":          {of("99999999999999999999"), 0},
		"the largest number": {of("9223372036854775807"), math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Of(tc.lease); got != tc.want {
				t.Errorf("epoch is %d, want %d", got, tc.want)
			}
		})
	}
}
