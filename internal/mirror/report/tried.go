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
)

// AttemptedMembers is the content of a root claim's annotation AnnotationTried: the members that failed to
// satisfy the claim. A round ends when Xylem has tried all members. The next one begins after a
// backoff.
type AttemptedMembers struct {
	// Rounds is the number of rounds that have ended.
	Rounds int `json:"rounds,omitempty"`
	// Moved is when the claim was last reassigned to another member or returned to the scheduler,
	// in seconds since the Unix epoch.
	Moved int64 `json:"moved,omitempty"`
	// Until is when the backoff after the last round ends, or 0 during a round.
	Until int64 `json:"until,omitempty"`
	// Members are the members that failed in this round or, during a backoff, in the last one.
	Members []AttemptedMember `json:"members,omitempty"`
}

// AttemptedMember is a member that failed to satisfy a claim.
type AttemptedMember struct {
	// Cluster is the member's cluster ID, and Name is its registration's name.
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Node is the virtual node if only a group of the member's nodes failed.
	Node string `json:"node,omitempty"`
	// Reason and Words are the reason and message of the claim's Placed condition, truncated.
	Reason string `json:"reason"`
	Words  string `json:"words"`
}

const (
	// attemptedMessageLimit is the maximum length, in bytes, of a member's message, and attemptedMembersLimit is the
	// maximum number of members. The annotations of an object may have 256 KiB in total.
	attemptedMessageLimit = 200
	attemptedMembersLimit = 100
	// maxRoundBackoff is the maximum backoff between two rounds.
	maxRoundBackoff = 30 * time.Minute
	// maxNodesOfMember is the maximum number of a member's virtual nodes that are tried in a round. Other members
	// must not wait for each of hundreds of groups.
	maxNodesOfMember = 3
	// attemptedBefore separates the member's problem from those of previously tried members in the
	// Placed condition's message.
	attemptedBefore = ". Tried before: "
)

// AttemptedMembersOf reads a root claim's annotation. An invalid value counts as empty.
func AttemptedMembersOf(claim *corev1.PersistentVolumeClaim) AttemptedMembers {
	var t AttemptedMembers
	if err := json.Unmarshal([]byte(claim.Annotations[v1alpha1.AnnotationTried]), &t); err != nil {
		return AttemptedMembers{}
	}
	return t
}

// AnnotationValue returns the value of the annotation.
func (t AttemptedMembers) AnnotationValue() (string, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("encode the members that failed: %w", err)
	}
	return string(text), nil
}

// HasAttempted reports whether a member failed in this round.
func (t AttemptedMembers) HasAttempted(clusterID string) bool {
	return t.HasAttemptedNode(clusterID, "")
}

// HasAttemptedNode reports whether a virtual node of a member failed in this round, or the whole member: because
// of what all of its nodes have in common, or because several of its nodes failed.
func (t AttemptedMembers) HasAttemptedNode(clusterID, node string) bool {
	count := 0
	for _, m := range t.Members {
		if m.Cluster != clusterID {
			continue
		}
		if count++; m.Node == "" || m.Node == node || count == maxNodesOfMember {
			return true
		}
	}
	return false
}

// WithFailedMember adds a member that failed.
func (t AttemptedMembers) WithFailedMember(m mirror.Member, problem *mirror.Refusal) AttemptedMembers {
	return t.WithFailedNode(m, "", problem)
}

// WithFailedNode adds a virtual node that failed, or, if node is empty, a member.
func (t AttemptedMembers) WithFailedNode(m mirror.Member, node string, problem *mirror.Refusal) AttemptedMembers {
	news := AttemptedMember{Cluster: m.ClusterID, Name: m.Registration, Node: node, Reason: mirror.PlainText(problem.Reason, attemptedMessageLimit), Words: mirror.PlainText(OwnProblem(problem).Message, attemptedMessageLimit)}
	t.Members = slices.DeleteFunc(slices.Clone(t.Members), func(old AttemptedMember) bool { return old.Cluster == m.ClusterID && (node == "" || old.Node == node) })
	if len(t.Members) >= attemptedMembersLimit {
		t.Members = t.Members[len(t.Members)-attemptedMembersLimit+1:]
	}
	t.Members = append(t.Members, news)
	return t
}

// BeginRound returns t at the given time. Once the backoff after the last round is over, t has no
// members.
func (t AttemptedMembers) BeginRound(now time.Time) AttemptedMembers {
	if t.Until != 0 && now.Unix() >= t.Until {
		t.Until, t.Members = 0, nil
	}
	return t
}

// EndRound returns t after the end of a round. The backoff begins with the class's timeout and doubles
// with each failed round.
func (t AttemptedMembers) EndRound(now time.Time, timeout time.Duration) AttemptedMembers {
	t.Rounds = min(t.Rounds, math.MaxInt16) + 1
	pause := timeout
	for range t.Rounds - 1 {
		if pause *= 2; pause >= maxRoundBackoff {
			break
		}
	}
	t.Moved = now.Unix()
	t.Until = now.Add(max(timeout, min(pause, maxRoundBackoff))).Unix()
	return t
}

// MessagesExcept returns the messages of all members except the given one, and those of its nodes other than node.
func (t AttemptedMembers) MessagesExcept(clusterID, node string) string {
	var messages []string
	for _, m := range t.Members {
		switch {
		case m.Cluster == clusterID && (m.Node == "" || m.Node == node):
		case m.Node == "":
			messages = append(messages, m.Words)
		default:
			messages = append(messages, fmt.Sprintf("node %q: %s", m.Node, m.Words))
		}
	}
	return strings.Join(messages, "; ")
}

// OwnProblem returns the part of a reported problem that is about the member itself, without what AppendOtherProblems
// appended.
func OwnProblem(reported *mirror.Refusal) *mirror.Refusal {
	own, _, _ := strings.Cut(reported.Message, attemptedBefore)
	if advice := AdviceForReason(reported.Reason); advice != "" {
		own, _, _ = strings.Cut(own, ". "+advice)
	}
	return &mirror.Refusal{Reason: reported.Reason, Message: own}
}

// AppendOtherProblems appends the problems of previously tried members and nodes, and advice, to the problem of a
// member. node is the selected virtual node.
func (t AttemptedMembers) AppendOtherProblems(problem *mirror.Refusal, m mirror.Member, node string) *mirror.Refusal {
	if problem == nil {
		return nil
	}
	message := problem.Message
	if messages := t.MessagesExcept(m.ClusterID, node); messages != "" {
		message += attemptedBefore + messages
	}
	if advice := AdviceForReason(problem.Reason); advice != "" {
		message += ". " + advice
	}
	return &mirror.Refusal{Reason: problem.Reason, Message: message}
}
