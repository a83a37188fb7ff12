package backlog

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// waitingClaim is a waiting claim.
type waitingClaim struct {
	claim types.NamespacedName
	uid   types.UID
	since time.Time
	// reported is true once the claim has been selected for a report, and report is true until the
	// report is made.
	selectedForReport, reportDue bool
}

// waitingClaims is a queue of claims. Namespaces alternate, and the claims of one namespace stay in order.
// Thus thousands of claims in one namespace do not delay claims in others.
type waitingClaims struct {
	claims     map[types.NamespacedName]*waitingClaim
	namespaces []string // in the order in which they are next
	order      map[string][]*waitingClaim
}

func newWaitingClaims() waitingClaims {
	return waitingClaims{claims: map[types.NamespacedName]*waitingClaim{}, order: map[string][]*waitingClaim{}}
}

func (l *waitingClaims) len() int { return len(l.claims) }

func (l *waitingClaims) add(w *waitingClaim) {
	l.claims[w.claim] = w
	if _, there := l.order[w.claim.Namespace]; !there {
		l.namespaces = append(l.namespaces, w.claim.Namespace)
	}
	l.order[w.claim.Namespace] = append(l.order[w.claim.Namespace], w)
}

// remove removes a claim from the queue. next skips its entry.
func (l *waitingClaims) remove(claim types.NamespacedName) bool {
	if _, waits := l.claims[claim]; !waits {
		return false
	}
	if delete(l.claims, claim); len(l.claims) == 0 {
		*l = newWaitingClaims()
	}
	return true
}

// next removes and returns the next claim, or nil.
func (l *waitingClaims) next() *waitingClaim {
	for len(l.namespaces) > 0 {
		namespace := l.namespaces[0]
		l.namespaces = l.namespaces[1:]
		claims := l.order[namespace]
		first := slices.IndexFunc(claims, l.waits)
		if first < 0 {
			delete(l.order, namespace)
			continue
		}
		l.namespaces = append(l.namespaces, namespace)
		l.order[namespace] = claims[first+1:]
		l.remove(claims[first].claim)
		return claims[first]
	}
	return nil
}

// longest iterates over the waiting claims. In each namespace, it begins at the end of the queue.
func (l *waitingClaims) longest() iter.Seq[*waitingClaim] {
	return func(yield func(*waitingClaim) bool) {
		for _, namespace := range l.namespaces {
			for _, w := range slices.Backward(l.order[namespace]) {
				if l.waits(w) && !yield(w) {
					return
				}
			}
		}
	}
}

func (l *waitingClaims) waits(w *waitingClaim) bool { return l.claims[w.claim] == w }
