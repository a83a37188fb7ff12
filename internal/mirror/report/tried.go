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

// Tried is what a root claim's annotation AnnotationTried says of the members that
// failed to meet it. A round ends when no member is left to try; the next begins
// after a pause.
type Tried struct {
	// Rounds that have ended.
	Rounds int `json:"rounds,omitempty"`
	// Moved is when the claim was last sent to another member, or given back to the
	// scheduler; in seconds since 1970.
	Moved int64 `json:"moved,omitempty"`
	// Until is when the pause after the last round ends; 0 while a round lasts.
	Until int64 `json:"until,omitempty"`
	// Members that failed in this round, or in the one that ended last.
	Members []TriedMember `json:"members,omitempty"`
}

// TriedMember is a member that failed to meet a claim.
type TriedMember struct {
	// Cluster is its identity, Name its registration's.
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Reason of the claim's Placed condition, and what it said, cut.
	Reason string `json:"reason"`
	Words  string `json:"words"`
}

const (
	// triedWords in bytes are kept of what one member said, triedMembers of them: an
	// object's annotations have 256 KiB together.
	triedWords   = 200
	triedMembers = 100
	// longestPause between two rounds.
	longestPause = 30 * time.Minute
	// triedBefore separates, in the Placed condition's message, what its member reports
	// from what others reported before.
	triedBefore = ". Tried before: "
)

// TriedOf reads a root claim's annotation; one that does not parse is empty.
func TriedOf(claim *corev1.PersistentVolumeClaim) Tried {
	var t Tried
	if err := json.Unmarshal([]byte(claim.Annotations[v1alpha1.AnnotationTried]), &t); err != nil {
		return Tried{}
	}
	return t
}

// Annotation is the value that says so.
func (t Tried) Annotation() (string, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("write down what was tried: %w", err)
	}
	return string(text), nil
}

// Has reports whether a member failed in this round.
func (t Tried) Has(clusterID string) bool {
	return slices.ContainsFunc(t.Members, func(m TriedMember) bool { return m.Cluster == clusterID })
}

// With is what was tried, this member too.
func (t Tried) With(m mirror.Member, problem *mirror.Refusal) Tried {
	words, _, _ := strings.Cut(problem.Message, triedBefore)
	if advice := Advice(problem.Reason); advice != "" {
		words, _, _ = strings.Cut(words, ". "+advice)
	}
	news := TriedMember{Cluster: m.ClusterID, Name: m.Registration, Reason: sanitize.Plain(problem.Reason, triedWords), Words: sanitize.Plain(words, triedWords)}
	t.Members = slices.DeleteFunc(slices.Clone(t.Members), func(old TriedMember) bool { return old.Cluster == m.ClusterID })
	if len(t.Members) >= triedMembers {
		t.Members = t.Members[len(t.Members)-triedMembers+1:]
	}
	t.Members = append(t.Members, news)
	return t
}

// Begin is what was tried in the round that lasts at the given time: nothing yet
// if the pause after the last one is over.
func (t Tried) Begin(now time.Time) Tried {
	if t.Until != 0 && now.Unix() >= t.Until {
		t.Until, t.Members = 0, nil
	}
	return t
}

// End is what was tried when a round ends: the next begins after a pause, which
// doubles with each round that has failed, from the class's timeout.
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

// Said are the words of those members, but one.
func (t Tried) Said(except string) string {
	var said []string
	for _, m := range t.Members {
		if m.Cluster != except {
			said = append(said, m.Words)
		}
	}
	return strings.Join(said, "; ")
}

// AfterOthers is a problem of a member with what others reported before it, and with what
// users can do.
func (t Tried) AfterOthers(problem *mirror.Refusal, m mirror.Member) *mirror.Refusal {
	if problem == nil {
		return nil
	}
	message := problem.Message
	if said := t.Said(m.ClusterID); said != "" {
		message += triedBefore + said
	}
	if advice := Advice(problem.Reason); advice != "" {
		message += ". " + advice
	}
	return &mirror.Refusal{Reason: problem.Reason, Message: message}
}
