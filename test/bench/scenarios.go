package main

import (
	"context"

	"github.com/xylem-io/xylem/test/controlplane"
)

// Names of scenarios.
const (
	latencyName   = "latency"
	burstName     = "burst"
	churnName     = "churn"
	scaleName     = "scale"
	isolationName = "isolation"
	foreignName   = "foreign"
	admissionName = "admission"
)

// latency measures claims and Pods at a steady rate.
func (b *bench) latency(ctx context.Context) error {
	r, err := b.clusters(ctx, 2)
	if err != nil {
		return err
	}
	for repeat := range b.repeats {
		p := part{scenario: latencyName, repeat: repeat + 1, claims: int(b.rate * b.rateFor.Seconds()), rate: b.rate}
		if err := r.yardNative(ctx, p); err != nil {
			return err
		}
		if err := r.yardDriver(ctx, p); err != nil {
			return err
		}
		for _, mode := range []string{partMirror, partPromise} {
			if err := r.mirrored(ctx, p, mode); err != nil {
				return err
			}
		}
	}
	return nil
}

// bursts measures many claims and Pods that are created together.
func (b *bench) bursts(ctx context.Context) error {
	for _, s := range b.sizes {
		r, err := b.clusters(ctx, s.members)
		if err != nil {
			return err
		}
		for repeat := range b.repeats {
			p := part{scenario: burstName, repeat: repeat + 1, claims: s.claims}
			measures := []func(context.Context, part) error{r.yardFloor, r.yardNative, r.yardDriver}
			if s.claims <= plainLimit {
				measures = append(measures, r.yardPlain)
			}
			measures = append(measures, func(ctx context.Context, p part) error { return r.mirrored(ctx, p, partMirror) })
			for _, measure := range measures {
				if err := measure(ctx, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Parts of isolation.
const (
	partAllWell   = "all members healthy"
	partBlackhole = "one black-holed"
)

// isolation measures claims and Pods at a steady rate in all members except one. That member is
// healthy in the first part. In the second part, it accepts connections but does not respond.
func (b *bench) isolation(ctx context.Context) error {
	victimName := memberName(b.apart - 1)
	if b.proxied != victimName { // only a member with a proxy can become a black hole
		if err := b.close(ctx); err != nil {
			return err
		}
		b.proxied = victimName
		defer func() { b.proxied = "" }()
	}
	r, err := b.clusters(ctx, b.apart)
	if err != nil {
		return err
	}
	p := part{scenario: isolationName, claims: int(b.rate * b.rateFor.Seconds()), rate: b.rate}
	for i := range b.apart - 1 {
		p.nodes = append(p.nodes, nodeName(i))
	}
	victim := r.x.Fleet.Member(b.proxied).Proxy()
	black := p
	black.meanwhile = func(on bool) error {
		if on {
			return victim.SetMode(controlplane.Blackhole)
		}
		return victim.SetMode(controlplane.Pass)
	}
	for repeat := range b.repeats {
		p.repeat, black.repeat = repeat+1, repeat+1
		if err := r.mirrored(ctx, p, partAllWell); err != nil {
			return err
		}
		if err := r.mirrored(ctx, black, partBlackhole); err != nil {
			return err
		}
		if err := r.restart(ctx); err != nil { // until the member is connected again
			return err
		}
	}
	return b.close(ctx)
}
