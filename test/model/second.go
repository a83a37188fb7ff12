package model

import (
	"context"
	"slices"

	"github.com/xylem-io/xylem/internal/proof"
)

// ofSecond is the suffix that distinguishes the second member's controllers.
const ofSecond = " of the second member"

// exchanged returns the world from the second member's point of view: the two members' objects are
// exchanged. A restore of the member, and a stale cache of leaf objects, affect only the first
// member.
func (w world) exchanged() world {
	w.memberState, w.second = w.second, w.memberState
	w.memberRestored = false
	if w.suspended == theMember {
		w.suspended = neither
	}
	if w.lagging == leafClaims || w.lagging == leafVolumes {
		w.follow()
	}
	w.stale.memberState, w.stale.second = w.stale.second, w.stale.memberState
	return w
}

// asSecond marks steps as those of the second member's controllers.
func asSecond(steps []step) []step {
	taken := slices.Clone(steps)
	for i := range taken {
		taken[i].controller += ofSecond
		taken[i].second = true
		if taken[i].wrote != (written{}) && taken[i].wrote.side == memberSide {
			taken[i].wrote.side = secondSide
		}
	}
	return taken
}

// inSecond makes the moves of the second member's controllers.
func (ms *moves) inSecond() {
	seen := &moves{model: ms.model.second, from: ms.from.exchanged()}
	seen.inMember()
	for _, move := range seen.made {
		ms.add("second "+move.name, func(to *world) {
			to.second, to.disks, to.mirrored, to.theirs = move.to.memberState, move.to.disks, move.to.mirrored, move.to.theirs
		})
	}
}

// others returns the other members that may have a claim, from this member's point of view. A
// member that is not modeled has no leaf claims.
func (m *Model) others(live reader) []proof.OtherMember {
	if !m.bounds.Members {
		return nil
	}
	seen := live.state
	live.state = func() state {
		s := seen()
		s.memberState = s.second
		return s
	}
	return []proof.OtherMember{{Registration: m.other.Registration, Live: live, CheckUnrestored: func(context.Context) error { return nil }}}
}
