package usage

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// none is the first value of a counter. It is not 0, because metrics-server treats 0 as a missing
	// value.
	none = 1e-6
	// skew is how far a member's clock may be ahead of the manager's clock.
	skew = time.Minute
	// mostCores and mostBytes cap the usage of a container.
	mostCores, mostBytes = 1e5, 1 << 60
	// ReadLimit is the maximum number of requests that read a member's metrics API at the same time.
	// metrics-server sends one at a time. The sessions have another limit, so that users cannot
	// prevent metrics.
	ReadLimit = 4
)

// Leaf is a Pod that Xylem pushed to the member.
type Leaf struct {
	// Pod is the name of the Pod in the host and the member.
	Pod     types.NamespacedName
	UID     types.UID
	Created time.Time
	// Containers contains the names of the root's containers.
	Containers map[string]bool
}

// Counter is the usage of a container or a node.
type Counter struct {
	// Since is the time of the first sample, and Taken the time of the last sample.
	Since, Taken time.Time
	// CPU is in seconds since Since. Memory is in bytes.
	CPU, Memory float64
}

// add adds the usage since the previous sample.
func (c *Counter) add(taken time.Time, cpu, memory float64) {
	switch {
	case c.Taken.IsZero():
		*c = Counter{Since: taken, Taken: taken, CPU: none, Memory: memory}
	case taken.After(c.Taken):
		c.CPU += cpu * taken.Sub(c.Taken).Seconds()
		c.Taken, c.Memory = taken, memory
	}
}

// Reading is the state of a Meter at one point in time.
type Reading struct {
	// Node is the sum of the Pods' counters. Its times are zero if there are no Pods.
	Node Counter
	Pods []PodReading
}

// PodReading contains the counters of a Pod's containers.
type PodReading struct {
	Pod        types.NamespacedName
	Containers map[string]Counter
}

// Meter counts the usage of the leaves of one member. The zero value is ready to use.
type Meter struct {
	reads  atomic.Int32
	mu     sync.Mutex
	leaves map[types.UID]map[string]*Counter
	node   Counter
}

// Begin reports whether another request may read the member's metrics API. If so, the caller must call
// End.
func (m *Meter) Begin() bool {
	if m.reads.Add(1) > ReadLimit {
		m.End()
		return false
	}
	return true
}

// End ends the request that Begin began.
func (m *Meter) End() { m.reads.Add(-1) }

// Add adds samples, which were read at now, to the leaves' counters. It deletes the counters of
// leaves without a sample.
func (m *Meter) Add(now time.Time, leaves map[types.NamespacedName]Leaf, samples []Sample) Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	var reading Reading
	var cpu, memory float64
	var latest time.Time
	counted := map[types.UID]map[string]*Counter{}
	for _, s := range samples {
		leaf, known := leaves[s.Pod]
		if !known || counted[leaf.UID] != nil || s.Taken.Before(leaf.Created) || s.Taken.After(now.Add(skew)) {
			continue
		}
		counters := map[string]*Counter{}
		pod := PodReading{Pod: leaf.Pod, Containers: map[string]Counter{}}
		for _, c := range s.Containers {
			if !leaf.Containers[c.Name] || counters[c.Name] != nil {
				continue
			}
			c.CPU, c.Memory = within0(c.CPU, mostCores), within0(c.Memory, mostBytes)
			counter := m.leaves[leaf.UID][c.Name]
			if counter == nil {
				counter = &Counter{}
			}
			counter.add(s.Taken, c.CPU, c.Memory)
			counters[c.Name], pod.Containers[c.Name] = counter, *counter
			cpu, memory = cpu+c.CPU, memory+c.Memory
		}
		if s.Taken.After(latest) {
			latest = s.Taken
		}
		counted[leaf.UID] = counters
		reading.Pods = append(reading.Pods, pod)
	}
	m.leaves = counted
	if len(reading.Pods) > 0 {
		m.node.add(latest, cpu, memory)
		reading.Node = m.node
	}
	return reading
}

// within0 clamps a value to the range from 0 to most. NaN becomes 0.
func within0(v, most float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(v, most)
}
