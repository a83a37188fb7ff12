package fencing

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestDisagreement(t *testing.T) {
	for name, tc := range map[string]struct {
		there, here, first, next int64
		confirmed                string
		want                     string
	}{
		"the first leadership":                                                           {want: ""},
		"the first leadership, after a crash":                                            {next: 1, want: ""},
		"the epochs agree":                                                               {there: 3, here: 3, want: ""},
		"equal epochs, and an intended epoch remains (I6)":                               {there: 3, here: 3, next: 4, want: ""},
		"the member has the intended epoch (I6)":                                         {there: 4, here: 3, next: 4, want: ""},
		"the host was restored (I2)":                                                     {there: 5, here: 3, want: v1alpha1.ReasonHostRestored},
		"the host was restored to a state with an intended epoch (I2)":                   {there: 5, here: 3, next: 4, want: v1alpha1.ReasonHostRestored},
		"the host has no record (I2)":                                                    {there: 5, want: v1alpha1.ReasonHostRestored},
		"the member was restored (I2)":                                                   {there: 3, here: 5, want: v1alpha1.ReasonMemberRestored},
		"the member was restored, and the host has an intended epoch (I2)":               {there: 3, here: 5, next: 6, want: v1alpha1.ReasonMemberRestored},
		"the member has no Lease (I2)":                                                   {here: 5, want: v1alpha1.ReasonMemberRestored},
		"the member has no Lease, and the host has an intended epoch":                    {here: 5, next: 6, want: v1alpha1.ReasonMemberRestored},
		"the member has the epoch that was intended before the last one (I6)":            {there: 4, here: 3, first: 4, next: 6, want: ""},
		"the member has an epoch between the intended ones (I6)":                         {there: 5, here: 3, first: 4, next: 6, want: ""},
		"the host was restored to a state with several intended epochs (I2)":             {there: 7, here: 3, first: 4, next: 6, want: v1alpha1.ReasonHostRestored},
		"the member was restored again, while its first restore is being confirmed (I2)": {there: 5, here: 3, first: 6, next: 6, want: v1alpha1.ReasonHostRestored},
		"an intended epoch remains from an earlier release (I2)":                         {there: 5, here: 3, next: 6, want: v1alpha1.ReasonHostRestored},
		"the member was restored, and the intended epochs are outdated (I2)":             {there: 4, here: 5, first: 4, next: 6, want: v1alpha1.ReasonMemberRestored},
		"confirmed": {there: 3, here: 5, confirmed: "host-5-member-3", want: ""},
		"the confirmation of another restore (I2)":         {there: 3, here: 6, confirmed: "host-5-member-3", want: v1alpha1.ReasonMemberRestored},
		"the confirmation of the opposite restore (I2)":    {there: 5, here: 3, confirmed: "host-5-member-3", want: v1alpha1.ReasonHostRestored},
		"a hostile member with the highest possible epoch": {there: math.MaxInt64, here: 3, want: v1alpha1.ReasonHostRestored},
	} {
		t.Run(name, func(t *testing.T) {
			p := EpochDisagreement(tc.there, recorded(tc.here, tc.first, tc.next), tc.confirmed)
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

// recorded returns the epochs of a record with the given annotations.
func recorded(here, first, next int64) RecordedEpochs {
	return ReadRecordedEpochs(recordOf(here, first, next))
}

func recordOf(here, first, next int64) *coordinationv1.Lease {
	record := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	for annotation, n := range map[string]int64{v1alpha1.AnnotationFenceEpoch: here, annotationFirstEpoch: first, annotationNextEpoch: next} {
		if n != 0 {
			record.Annotations[annotation] = strconv.FormatInt(n, 10)
		}
	}
	return record
}

func TestSet(t *testing.T) {
	type pair struct{ current, next int64 }
	for name, tc := range map[string]struct {
		set  []pair
		want RecordedEpochs
	}{
		"a current epoch":                               {[]pair{{3, 0}}, RecordedEpochs{3, 0, 0}},
		"an intended epoch":                             {[]pair{{3, 0}, {3, 4}}, RecordedEpochs{3, 4, 4}},
		"the intended epoch is reached":                 {[]pair{{3, 4}, {4, 0}}, RecordedEpochs{4, 0, 0}},
		"another intended epoch":                        {[]pair{{3, 4}, {3, 5}, {3, 6}}, RecordedEpochs{3, 4, 6}},
		"another intended epoch after an outcome":       {[]pair{{3, 4}, {3, 5}, {4, 6}}, RecordedEpochs{4, 6, 6}},
		"the same epochs again (I6)":                    {[]pair{{3, 4}, {3, 5}, {3, 5}}, RecordedEpochs{3, 4, 5}},
		"the confirmation of a member's restore":        {[]pair{{5, 0}, {3, 6}}, RecordedEpochs{3, 6, 6}},
		"the confirmation, after an intended epoch":     {[]pair{{5, 6}, {3, 7}}, RecordedEpochs{3, 7, 7}},
		"evidence of a restore":                         {[]pair{{3, 4}, {3, 5}, {2, 0}}, RecordedEpochs{2, 0, 0}},
		"an intended epoch after evidence of a restore": {[]pair{{3, 4}, {3, 0}, {3, 5}}, RecordedEpochs{3, 5, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			record := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
			for _, s := range tc.set {
				SetLeaseEpochs(record, s.current, s.next)
			}
			if diff := cmp.Diff(tc.want, ReadRecordedEpochs(record)); diff != "" {
				t.Error(diff)
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
			if got := LeaseEpoch(tc.lease); got != tc.want {
				t.Errorf("epoch is %d, want %d", got, tc.want)
			}
		})
	}
}
