package pacing

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

const (
	// changeBurst and changeRefill limit how often a member can change one object in the host. A
	// burst covers a user who expands a volume in several steps, or changes its attributes again
	// after a failure.
	changeBurst  = 5
	changeRefill = 10 * time.Second
	// changed is the maximum number of objects whose rate is tracked. For all objects together, Bytes
	// limits the rate.
	changed = 4096
)

// Changes limits how often one member changes each object.
type Changes struct {
	mu      sync.Mutex
	objects *lru.Cache // UID -> *rate.Limiter
}

// NewChanges returns the limits for one member.
func NewChanges() *Changes { return &Changes{objects: lru.New(changed)} }

// Take counts a change of an object and returns 0. If the change must wait, Take counts nothing and
// returns how long.
func (c *Changes) Take(object types.UID, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return take(c.of(object), 1, now)
}

// of returns the limiter of an object.
func (c *Changes) of(object types.UID) *rate.Limiter {
	if value, ok := c.objects.Get(object); ok {
		if limiter, ok := value.(*rate.Limiter); ok {
			return limiter
		}
	}
	limiter := rate.NewLimiter(rate.Every(changeRefill), changeBurst)
	c.objects.Add(object, limiter)
	return limiter
}

// take takes n tokens and returns 0. If they are not available yet, take takes none and returns the
// time until they are.
func take(limiter *rate.Limiter, n int, now time.Time) time.Duration {
	reservation := limiter.ReserveN(now, n)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}
