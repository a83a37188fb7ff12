package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

// Tried is the content of a root claim's annotation AnnotationTried: the members that failed to
// satisfy the claim. A round ends when Xylem has tried all members. The next one begins after a
// backoff.
type Tried struct {
	// Rounds is the number of rounds that have ended.
	Rounds int `json:"rounds,omitempty"`
	// Moved is when the claim was last reassigned to another member or returned to the scheduler,
	// in seconds since the Unix epoch.
	Moved int64 `json:"moved,omitempty"`
	// Until is when the backoff after the last round ends, or 0 during a round.
	Until int64 `json:"until,omitempty"`
	// Members are the members that failed in this round or, during a backoff, in the last one.
	Members []TriedMember `json:"members,omitempty"`
}

// TriedMember is a member that failed to satisfy a claim.
type TriedMember struct {
	// Cluster is the member's cluster ID, and Name is its registration's name.
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Reason and Words are the reason and message of the claim's Placed condition, truncated.
	Reason string `json:"reason"`
	Words  string `json:"words"`
}

const (
	// triedWords is the maximum length, in bytes, of a member's message, and triedMembers is the
	// maximum number of members. The annotations of an object may have 256 KiB in total.
	triedWords   = 200
	triedMembers = 100
	// longestPause is the maximum backoff between two rounds.
	longestPause = 30 * time.Minute
	// triedBefore separates the member's problem from those of previously tried members in the
	// Placed condition's message.
	triedBefore = ". Tried before: "
)

// TriedOf reads a root claim's annotation. An invalid value counts as empty.
func TriedOf(claim *corev1.PersistentVolumeClaim) Tried {
	var t Tried
	if err := json.Unmarshal([]byte(claim.Annotations[v1alpha1.AnnotationTried]), &t); err != nil {
		return Tried{}
	}
	return t
}

// Annotation returns the value of the annotation.
func (t Tried) Annotation() (string, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("encode the members that failed: %w", err)
	}
	return string(text), nil
}

// Has reports whether a member failed in this round.
func (t Tried) Has(clusterID string) bool {
	return slices.ContainsFunc(t.Members, func(m TriedMember) bool { return m.Cluster == clusterID })
}

// With adds a member that failed.
func (t Tried) With(m mirror.Member, problem *mirror.Refusal) Tried {
	news := TriedMember{Cluster: m.ClusterID, Name: m.Registration, Reason: sanitize.Plain(problem.Reason, triedWords), Words: sanitize.Plain(Own(problem).Message, triedWords)}
	t.Members = slices.DeleteFunc(slices.Clone(t.Members), func(old TriedMember) bool { return old.Cluster == m.ClusterID })
	if len(t.Members) >= triedMembers {
		t.Members = t.Members[len(t.Members)-triedMembers+1:]
	}
	t.Members = append(t.Members, news)
	return t
}

// Begin returns t at the given time. Once the backoff after the last round is over, t has no
// members.
func (t Tried) Begin(now time.Time) Tried {
	if t.Until != 0 && now.Unix() >= t.Until {
		t.Until, t.Members = 0, nil
	}
	return t
}

// End returns t after the end of a round. The backoff begins with the class's timeout and doubles
// with each failed round.
func (t Tried) End(now time.Time, timeout time.Duration) Tried {
	t.Rounds = min(t.Rounds, math.MaxInt16) + 1
	pause := timeout
	for range t.Rounds - 1 {
		if pause *= 2; pause >= longestPause {
			break
		}
	}
	t.Moved = now.Unix()
	t.Until = now.Add(max(timeout, min(pause, longestPause))).Unix()
	return t
}

// MessagesExcept returns the messages of all members except the given one.
func (t Tried) MessagesExcept(except string) string {
	var messages []string
	for _, m := range t.Members {
		if m.Cluster != except {
			messages = append(messages, m.Words)
		}
	}
	return strings.Join(messages, "; ")
}

// Own returns the part of a reported problem that is about the member itself, without what AfterOthers
// appended.
func Own(reported *mirror.Refusal) *mirror.Refusal {
	own, _, _ := strings.Cut(reported.Message, triedBefore)
	if advice := Advice(reported.Reason); advice != "" {
		own, _, _ = strings.Cut(own, ". "+advice)
	}
	return &mirror.Refusal{Reason: reported.Reason, Message: own}
}

// AfterOthers appends the problems of previously tried members, and advice, to a member's problem.
func (t Tried) AfterOthers(problem *mirror.Refusal, m mirror.Member) *mirror.Refusal {
	if problem == nil {
		return nil
	}
	message := problem.Message
	if messages := t.MessagesExcept(m.ClusterID); messages != "" {
		message += triedBefore + messages
	}
	if advice := Advice(problem.Reason); advice != "" {
		message += ". " + advice
	}
	return &mirror.Refusal{Reason: problem.Reason, Message: message}
}
