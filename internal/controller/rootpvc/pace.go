package rootpvc

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/xylem-io/xylem/internal/guarded"
)

const (
	// paceBurst and paceRefill limit how often a member's changing messages about a rejected claim
	// are reported. Each message costs two writes to the host, and other controllers react to
	// them. An honest member rejects a claim for only a few reasons.
	paceBurst  = 5
	paceRefill = 10 * time.Second
	// tracked is the maximum number of claims that are remembered.
	tracked = 4096
	// VolumeRequestWait is how long Xylem waits for the host's PV controller to request a volume after the
	// scheduler has selected the node. The PV controller needs milliseconds, or longer after a
	// conflict, which it would report to the user as a Warning.
	VolumeRequestWait = time.Second
)

// reportPacer limits, for each root, the rate of reports that a member causes, and the time to wait
// for other writers.
type reportPacer struct {
	mu               sync.Mutex
	limiters         *guarded.ObjectRate
	waitedForVersion *lru.Cache // root UID -> resourceVersion for which Xylem waited
	stateSince       *lru.Cache // root UID -> when a state of the root began
	requeueDelays    map[types.UID]time.Duration
}

func newReportPacer() *reportPacer {
	return &reportPacer{
		limiters:         guarded.NewObjectRate(rate.NewLimiter(rate.Inf, 0), paceBurst, paceRefill),
		waitedForVersion: lru.New(tracked), stateSince: lru.New(tracked), requeueDelays: map[types.UID]time.Duration{},
	}
}

// WaitOnce returns true the first time that it is called for a root with this resourceVersion. Owes
// then returns how long to wait.
func (p *reportPacer) WaitOnce(root types.UID, version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, known := p.waitedForVersion.Get(root); known && before == version {
		return false
	}
	p.waitedForVersion.Add(root, version)
	p.requeueDelays[root] = VolumeRequestWait
	return true
}

// StateLasted returns true, and restarts, once a state of a root has lasted for the given time. The state
// begins with the first call after EndState. Before that, TakeRequeueDelay returns how long to wait.
func (p *reportPacer) StateLasted(root types.UID, after time.Duration, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	value, known := p.stateSince.Get(root)
	since, _ := value.(time.Time)
	if !known {
		since = now
		p.stateSince.Add(root, now)
	}
	if left := since.Add(after).Sub(now); left > 0 {
		p.requeueDelays[root] = left
		return false
	}
	p.stateSince.Remove(root)
	return true
}

// EndState ends the state that StateLasted measures.
func (p *reportPacer) EndState(root types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stateSince.Remove(root)
}

// allowReport returns false if the limit is reached. Owes then returns when to retry.
func (p *reportPacer) allowReport(root types.UID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limiters.TakeToken(root, now) == 0 {
		return true
	}
	p.requeueDelays[root] = paceRefill
	return false
}

// TakeRequeueDelay returns the delay after which the root must be reconciled again, or 0. It returns each delay
// to the first caller only.
func (p *reportPacer) TakeRequeueDelay(root types.UID) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	after := p.requeueDelays[root]
	delete(p.requeueDelays, root)
	return after
}
