package fencing

import (
	"slices"
	"testing"
)

// protocol is a state of the fence. One manager at a time takes steps: it reads both clusters,
// records the intended epoch in the host, writes the Lease, and records the reached epoch. It may end
// at any point, and its write to the member may arrive at any later time.
type protocol struct {
	member, version int64 // the Lease's epoch and resourceVersion
	host            RecordedEpochs
	phase           phase
	target, read    int64    // of the current step: its epoch, and the version that it read
	late            [2]write // to the member
	// backup is the host's record in the backup, once backedUp is set. began reports whether the
	// current step began after the backup, and completed whether such a step completed before the
	// host was restored.
	backup                               RecordedEpochs
	backedUp, began, completed, restored bool
}

type phase int

const (
	idle phase = iota
	intended
	reached
)

type write struct{ version, target int64 }

// put returns the host's record after a write.
func put(host RecordedEpochs, current, next int64) RecordedEpochs {
	record := recordOf(host.Current, host.FirstIntended, host.LastIntended)
	SetLeaseEpochs(record, current, next)
	return ReadRecordedEpochs(record)
}

// next returns the states after every step, crash, delay, backup and restore.
func (p protocol) next() []protocol {
	var all []protocol
	then := func(change func(*protocol)) {
		s := p
		change(&s)
		all = append(all, s)
	}
	end := func(s *protocol) { s.phase, s.target, s.read, s.began = idle, 0, 0, false }
	switch p.phase {
	case idle:
		then(func(s *protocol) { s.version++ }) // a renewal
		if EpochDisagreement(p.member, p.host, "") == nil {
			then(func(s *protocol) {
				s.target, s.read, s.began = s.host.EpochAfter(s.member), s.version, s.backedUp
				s.host, s.phase = put(s.host, s.member, s.target), intended
			})
		}
	case intended:
		then(end)
		if i := slices.Index(p.late[:], write{}); i >= 0 {
			then(func(s *protocol) {
				s.late[i] = write{s.read, s.target}
				end(s)
			})
		}
		if p.version == p.read {
			then(func(s *protocol) { s.member, s.version, s.phase = s.target, s.version+1, reached })
		}
	case reached:
		then(end)
		then(func(s *protocol) {
			s.host, s.completed = put(s.host, s.target, 0), s.completed || s.began && !s.restored
			end(s)
		})
	}
	for i, w := range p.late {
		if w != (write{}) {
			then(func(s *protocol) {
				if s.late[i] = (write{}); s.version == w.version {
					s.member, s.version = w.target, s.version+1
				}
			})
		}
	}
	if !p.backedUp {
		then(func(s *protocol) { s.backup, s.backedUp = s.host, true })
	}
	if p.backedUp && !p.restored && p.phase == idle {
		then(func(s *protocol) { s.host, s.restored = s.backup, true })
	}
	return all
}

// Delayed and lost writes never look like a restore, and a restore of the host to a state before a
// completed step is always detected (I2, I6).
func TestProtocol(t *testing.T) {
	const epochs, versions = 4, 5
	seen, states := map[protocol]bool{{}: true}, []protocol{{}}
	agreeing, detected, delayed := 0, 0, 0
	for len(states) > 0 {
		p := states[len(states)-1]
		states = states[:len(states)-1]
		problem := EpochDisagreement(p.member, p.host, "")
		switch {
		case !p.restored && problem != nil:
			t.Fatalf("no cluster was restored, but %s: %+v", problem.Reason, p)
		case p.restored && p.completed && problem == nil:
			t.Fatalf("the restore of the host is not detected: %+v", p)
		case p.restored && problem != nil:
			detected++
			continue // until an admin confirms the restore
		}
		agreeing++
		if p.member != p.host.Current && p.member != p.host.LastIntended {
			delayed++
		}
		for _, s := range p.next() {
			if s.target <= epochs && s.version <= versions && !seen[s] {
				seen[s] = true
				states = append(states, s)
			}
		}
	}
	if detected == 0 || delayed == 0 {
		t.Errorf("%d restores and %d delayed writes, want some of each", detected, delayed)
	}
	t.Logf("%d agreeing states, %d after a delayed write, %d detected restores", agreeing, delayed, detected)
}
