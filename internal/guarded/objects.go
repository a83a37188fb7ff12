package guarded

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// TrackedObjects is the maximum number of objects whose rate an ObjectRate tracks. An object that it has forgotten
// begins with a full burst.
const TrackedObjects = 4096

// ObjectRate limits how often something happens to each object, and to all objects together.
type ObjectRate struct {
	mu      sync.Mutex
	all     *rate.Limiter
	burst   int
	refill  time.Duration
	objects *lru.Cache // UID -> *rate.Limiter
}

// NewObjectRate returns an ObjectRate that allows each object a burst, and then once per refill. all limits all
// objects together.
func NewObjectRate(all *rate.Limiter, burst int, refill time.Duration) *ObjectRate {
	return &ObjectRate{all: all, burst: burst, refill: refill, objects: lru.New(TrackedObjects)}
}

const (
	// objectChangeBurst and objectChangeRefill limit how often a member can change one object in the host. A
	// burst covers a user who expands a volume in several steps, or changes its attributes again
	// after a failure.
	objectChangeBurst  = 5
	objectChangeRefill = 10 * time.Second
	// memberChangeBurst and memberChangeRate (per second) limit this for all objects together, to about the rate
	// of the changes of statuses that ByteRate allows.
	memberChangeBurst = 10_000
	memberChangeRate  = 80
)

// NewChangeLimiter returns the limits for the changes of host objects that one member causes.
func NewChangeLimiter() *ObjectRate {
	return NewObjectRate(rate.NewLimiter(memberChangeRate, memberChangeBurst), objectChangeBurst, objectChangeRefill)
}

// TakeToken counts an object once and returns 0. If the object must wait, TakeToken counts nothing and returns
// how long.
func (e *ObjectRate) TakeToken(object types.UID, now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	one, all := e.limiterOf(object).ReserveN(now, 1), e.all.ReserveN(now, 1)
	wait := max(one.DelayFrom(now), all.DelayFrom(now))
	if wait > 0 {
		one.CancelAt(now)
		all.CancelAt(now)
	}
	return wait
}

// limiterOf returns the limiter of an object.
func (e *ObjectRate) limiterOf(object types.UID) *rate.Limiter {
	if value, ok := e.objects.Get(object); ok {
		if limiter, ok := value.(*rate.Limiter); ok {
			return limiter
		}
	}
	limiter := rate.NewLimiter(rate.Every(e.refill), e.burst)
	e.objects.Add(object, limiter)
	return limiter
}
