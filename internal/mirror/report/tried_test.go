package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

func TestTriedIsKept(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	first, second := mirror.Member{Registration: "first", ClusterID: "id1"}, mirror.Member{Registration: "second", ClusterID: "id2"}
	tried := AttemptedMembers{}.WithFailedMember(first, &mirror.Refusal{Reason: "OutOfSpace", Message: "member first has no capacity" + attemptedBefore + "others"}).
		WithFailedMember(second, &mirror.Refusal{Reason: "ProvisioningFailed", Message: "member second: " + strings.Repeat("x", 2*attemptedMessageLimit)}).
		WithFailedMember(first, &mirror.Refusal{Reason: "RefusedByMember", Message: "member first\x1b[31m refuses"})
	tried.Moved = at.Unix()
	text, err := tried.AnnotationValue()
	if err != nil {
		t.Fatal(err)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationTried: text}}}
	if diff := cmp.Diff(tried, AttemptedMembersOf(claim)); diff != "" {
		t.Errorf("the parsed annotation differs (-want +got):\n%s", diff)
	}
	words := mirror.PlainText("member second: "+strings.Repeat("x", 2*attemptedMessageLimit), attemptedMessageLimit)
	if diff := cmp.Diff(words+"; member first[31m refuses", tried.MessagesExcept("", "")); diff != "" {
		t.Errorf("want the last message of each member once, sanitized and in order: %s", diff)
	}
	if !tried.HasAttempted("id1") || tried.HasAttempted("id3") {
		t.Error("Has does not distinguish the members that failed")
	}
	got := tried.AppendOtherProblems(&mirror.Refusal{Reason: "OutOfSpace", Message: "member second has no capacity"}, second, "")
	if diff := cmp.Diff("member second has no capacity. Tried before: member first[31m refuses. "+AdviceForReason(v1alpha1.ReasonOutOfSpace), got.Message); diff != "" {
		t.Error(diff)
	}
	claim.Annotations[v1alpha1.AnnotationTried] = "{"
	if diff := cmp.Diff(AttemptedMembers{}, AttemptedMembersOf(claim)); diff != "" {
		t.Errorf("an annotation that does not parse does not count as empty (-want +got):\n%s", diff)
	}
}

func TestTriedIsBounded(t *testing.T) {
	var tried AttemptedMembers
	for i := range 2 * attemptedMembersLimit {
		id := strings.Repeat("i", 36) + time.Duration(i).String()
		tried = tried.WithFailedMember(mirror.Member{Registration: strings.Repeat("n", 63), ClusterID: id}, &mirror.Refusal{Reason: "ProvisioningFailed", Message: strings.Repeat("w", 4096)})
	}
	text, err := tried.AnnotationValue()
	if err != nil || len(text) > 128<<10 || len(tried.Members) != attemptedMembersLimit {
		t.Errorf("annotation has %d bytes and %d members (error %v), want %d members and less than 128 KiB", len(text), len(tried.Members), err, attemptedMembersLimit)
	}
}

func TestTriedRounds(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, test := range map[string]struct {
		rounds  int
		timeout time.Duration
		want    time.Duration
	}{
		"the first round":             {0, time.Minute, time.Minute},
		"the second round":            {1, time.Minute, 2 * time.Minute},
		"the fifth round":             {4, time.Minute, 16 * time.Minute},
		"the maximum backoff":         {5, time.Minute, maxRoundBackoff},
		"a huge number of rounds":     {1 << 40, time.Minute, maxRoundBackoff},
		"a timeout above the maximum": {3, 2 * time.Hour, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			tried := AttemptedMembers{Rounds: test.rounds, Members: []AttemptedMember{{Cluster: "id1"}}}.EndRound(now, test.timeout)
			if pause := time.Unix(tried.Until, 0).Sub(now); pause != test.want {
				t.Errorf("the backoff is %s, want %s", pause, test.want)
			}
			if during := tried.BeginRound(now.Add(test.want - time.Second)); !during.HasAttempted("id1") || during.Until == 0 {
				t.Error("a new round began before the backoff was over")
			}
			if after := tried.BeginRound(now.Add(test.want)); after.HasAttempted("id1") || after.Until != 0 || after.Rounds != tried.Rounds {
				t.Errorf("no new round began after the backoff: %+v", after)
			}
		})
	}
}
