package placement

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// Candidate is a member, with what the host's objects report about it.
type Candidate struct {
	Member
	Connection
	// Largest contains the maximum volume size of each host class that the member offers.
	Largest map[string]resource.Quantity
}

// Connection is the state of a registration's Connected condition. A member is Connecting until the
// manager's first attempt to connect has ended.
type Connection struct{ Connected, Connecting bool }

// Disconnected reports whether a member is disconnected. After the manager starts, it returns false until
// the first attempt to connect has ended.
func (c Connection) Disconnected() bool { return !c.Connected && !c.Connecting }

// SplitLeaving separates the members that stay from those that are Leaving.
func SplitLeaving(candidates []Candidate) (staying, leaving []Candidate) {
	for _, c := range candidates {
		if c.Leaving {
			leaving = append(leaving, c)
		} else {
			staying = append(staying, c)
		}
	}
	return staying, leaving
}

// Query asks which members can take some claims, which must be in one member, and the Pods that use them.
type Query struct {
	// Namespace is the host namespace of the claims and Pods.
	Namespace Namespace
	Claims    []ClaimNeed
	Pods      []corev1.Pod
	// HasClass reports whether a member itself has a class. It is nil if the caller does not know.
	HasClass func(registration, class string) bool
}

// ClaimNeed is what a claim needs of a member.
type ClaimNeed struct {
	// Name is the claim's name, for messages about other objects than the claim. Otherwise, it is empty.
	Name string
	// Class, Volume and Source are those of a Request.
	Class  *storagev1.StorageClass
	Volume *corev1.PersistentVolume
	Source *mirror.DataSource
	// Size is the requested size, or zero if any capacity suffices.
	Size resource.Quantity
}

// ofClaim names the claim in messages about other objects.
func (n ClaimNeed) ofClaim() string {
	if n.Name == "" {
		return ""
	}
	return fmt.Sprintf(" of claim %q", n.Name)
}

// Verdict is the answer of a Survey for one member.
type Verdict struct {
	Candidate
	// RuleObstacle is the obstacle because of the registration's rules, a class's topologies, a volume's node
	// affinity, or the kind of a data source. NodeObstacle is the one because of the virtual node and the Pods' own
	// requirements; it is nil if there are no Pods. StorageObstacle is the one because of the published capacity.
	RuleObstacle, NodeObstacle, StorageObstacle *Obstacle
	// Undecided is set if no rule is an obstacle, but Xylem does not know yet all that the rules depend on.
	Undecided bool
	// Schedulable reports whether the scheduler may place all Pods on the virtual node; see MayRunPods.
	Schedulable bool
	// Capacity is the lowest of the maximum sizes that the member has for the claims' classes, in bytes.
	Capacity int64
}

// Survey answers a query for each member.
func Survey(q Query, candidates []Candidate) []Verdict {
	verdicts := make([]Verdict, len(candidates))
	for i, c := range candidates {
		verdicts[i] = q.VerdictOn(c)
	}
	return verdicts
}

// VerdictOn answers the query for one member.
func (q Query) VerdictOn(c Candidate) Verdict {
	v := Verdict{Candidate: c, Schedulable: c.MayRunPods(q.Pods...), Capacity: math.MaxInt64}
	v.RuleObstacle, v.Undecided = q.findRuleObstacle(c)
	for i := range q.Pods {
		v.NodeObstacle = cmp.Or(v.NodeObstacle, c.nodeObstacle(&q.Pods[i]))
	}
	for _, claim := range q.Claims {
		if claim.Class != nil {
			v.StorageObstacle = cmp.Or(v.StorageObstacle, c.storageObstacle(claim, q.HasClass))
			largest := c.Largest[claim.Class.Name]
			v.Capacity = min(v.Capacity, largest.Value())
		}
	}
	return v
}

func (q Query) findRuleObstacle(c Candidate) (obstacle *Obstacle, undecided bool) {
	if c.Leaving {
		return leavingObstacle(c.Connected), false
	}
	claims := q.Claims
	if len(claims) == 0 || len(q.Pods) > 0 {
		// A Pod can use a claim of another class, but cannot leave its namespace, so the namespace comes first.
		claims = slices.Concat([]ClaimNeed{{}}, claims)
	}
	for _, claim := range claims {
		answer, obstacle := c.findObstacle(Request{Namespace: q.Namespace, Class: claim.Class, Volume: claim.Volume, Source: claim.Source})
		if obstacle != nil {
			return obstacle, false
		}
		undecided = undecided || answer.MustWait
	}
	return nil, undecided
}

// Admitted reports whether the rules allow the claims and Pods in the member.
func (v Verdict) Admitted() bool { return v.RuleObstacle == nil && !v.Undecided }

// Suitable reports whether the member can take the claims and Pods now.
func (v Verdict) Suitable() bool { return v.Admitted() && v.StorageObstacle == nil && v.Schedulable }

// Obstacle returns the first obstacle, or nil.
func (v Verdict) Obstacle() *Obstacle {
	return cmp.Or(v.RuleObstacle, v.NodeObstacle, v.StorageObstacle)
}

// Refusal returns the first obstacle as a problem to report, or nil.
func (v Verdict) Refusal() *mirror.Refusal { return v.refusalFor(v.Obstacle()) }

// ExcludedByClass reports whether the class's topologies exclude the member. The scheduler observes
// them, unlike the other rules.
func (v Verdict) ExcludedByClass() bool {
	return v.RuleObstacle != nil && v.RuleObstacle.Reason == v1alpha1.ReasonClassKeepsOff
}

// OneOfEachMember returns one verdict for each member: without an obstacle if possible, because a virtual node without
// one suffices.
func OneOfEachMember(verdicts []Verdict) []Verdict {
	var found []Verdict
	for _, v := range verdicts {
		switch i := slices.IndexFunc(found, func(f Verdict) bool { return f.Registration == v.Registration }); {
		case i < 0:
			found = append(found, v)
		case found[i].Obstacle() != nil && v.Obstacle() == nil:
			found[i] = v
		}
	}
	return found
}

// sharedObstacle is the obstacle of some of a member's virtual nodes, which have the same reason.
type sharedObstacle struct {
	Verdict
	nodes []string
}

// sharedObstacles returns one obstacle for each member and reason. In large members, many virtual nodes have the same
// obstacle.
func sharedObstacles(verdicts []Verdict) []sharedObstacle {
	type key struct{ registration, reason string }
	var found []sharedObstacle
	known := map[key]int{}
	for _, v := range verdicts {
		k := key{v.Registration, v.Obstacle().Reason}
		i, seen := known[k]
		if !seen {
			i = len(found)
			known[k], found = i, append(found, sharedObstacle{Verdict: v})
		}
		found[i].nodes = append(found[i].nodes, strconv.Quote(v.VirtualNodeName()))
	}
	return found
}

// Causes returns the obstacle of each member, with the member's name. If the virtual nodes of a member have several
// obstacles, it names these nodes.
func Causes(verdicts []Verdict) []string {
	shared := sharedObstacles(verdicts)
	causes := make([]string, len(shared))
	for i, s := range shared {
		several := slices.ContainsFunc(shared, func(other sharedObstacle) bool {
			return other.Registration == s.Registration && other.Obstacle().Reason != s.Obstacle().Reason
		})
		if causes[i] = s.describeObstacle(s.Obstacle()); several && !s.Obstacle().WholeSentence {
			causes[i] = fmt.Sprintf("member %q (on %s) %s", s.Registration, mirror.PlainText(strings.Join(s.nodes, ", "), maxNodeListLength), s.Obstacle().Cause)
		}
	}
	return causes
}

// Remedies returns what to do about the members' obstacles, without duplicates. If there are several members,
// remedies name no registration.
func Remedies(verdicts []Verdict) []string {
	shared := sharedObstacles(verdicts)
	severalMembers := slices.ContainsFunc(shared, func(s sharedObstacle) bool { return s.Registration != shared[0].Registration })
	var remedies []string
	for _, s := range shared {
		remedy := s.Obstacle().Remedy
		if severalMembers {
			remedy = strings.ReplaceAll(remedy, fmt.Sprintf("ClusterRegistration %q", s.Registration), "a ClusterRegistration")
		}
		if remedy != "" && !slices.Contains(remedies, remedy) {
			remedies = append(remedies, remedy)
		}
	}
	return remedies
}
