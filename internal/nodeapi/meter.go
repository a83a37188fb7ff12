package nodeapi

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// firstCounterValue is the first value of a counter. It is not 0, because metrics-server treats 0 as a missing
	// value.
	firstCounterValue = 1e-6
	// maxClockAhead is how far a member's clock may be ahead of the manager's clock.
	maxClockAhead = time.Minute
	// maxCores and maxBytes cap the usage of a container.
	maxCores, maxBytes = 1e5, 1 << 60
	// UsageReadLimit is the maximum number of requests that read a member's metrics API at the same time.
	// metrics-server sends one at a time. The sessions have another limit, so that users cannot
	// prevent metrics.
	UsageReadLimit = 4
)

// MeasuredLeaf is a Pod that Xylem pushed to the member.
type MeasuredLeaf struct {
	// Pod is the name of the Pod in the host and the member.
	Pod     types.NamespacedName
	UID     types.UID
	Created time.Time
	// Containers contains the names of the root's containers.
	Containers map[string]bool
}

// UsageCounter is the usage of a container or a node.
type UsageCounter struct {
	// Since is the time of the first sample, and Taken the time of the last sample.
	Since, Taken time.Time
	// CPU is in seconds since Since. Memory is in bytes.
	CPU, Memory float64
}

// addSample adds the usage since the previous sample.
func (c *UsageCounter) addSample(taken time.Time, cpu, memory float64) {
	switch {
	case c.Taken.IsZero():
		*c = UsageCounter{Since: taken, Taken: taken, CPU: firstCounterValue, Memory: memory}
	case taken.After(c.Taken):
		c.CPU += cpu * taken.Sub(c.Taken).Seconds()
		c.Taken, c.Memory = taken, memory
	}
}

// UsageReading is the state of a Meter at one point in time.
type UsageReading struct {
	// Node is the sum of the Pods' counters. Its times are zero if there are no Pods.
	Node UsageCounter
	Pods []PodReading
}

// PodReading contains the counters of a Pod's containers.
type PodReading struct {
	Pod        types.NamespacedName
	Containers map[string]UsageCounter
}

// UsageMeter counts the usage of the leaves of one member. The zero value is ready to use.
type UsageMeter struct {
	reads  atomic.Int32
	mu     sync.Mutex
	leaves map[types.UID]map[string]*UsageCounter
	node   UsageCounter
}

// BeginRead reports whether another request may read the member's metrics API. If so, the caller must call
// End.
func (m *UsageMeter) BeginRead() bool {
	if m.reads.Add(1) > UsageReadLimit {
		m.EndRead()
		return false
	}
	return true
}

// EndRead ends the request that BeginRead began.
func (m *UsageMeter) EndRead() { m.reads.Add(-1) }

// AddSamples adds samples, which were read at now, to the leaves' counters. It deletes the counters of
// leaves without a sample.
func (m *UsageMeter) AddSamples(now time.Time, leaves map[types.NamespacedName]MeasuredLeaf, samples []UsageSample) UsageReading {
	m.mu.Lock()
	defer m.mu.Unlock()
	var reading UsageReading
	var cpu, memory float64
	var latest time.Time
	counted := map[types.UID]map[string]*UsageCounter{}
	for _, s := range samples {
		leaf, known := leaves[s.Pod]
		if !known || counted[leaf.UID] != nil || s.Taken.Before(leaf.Created) || s.Taken.After(now.Add(maxClockAhead)) {
			continue
		}
		counters := map[string]*UsageCounter{}
		pod := PodReading{Pod: leaf.Pod, Containers: map[string]UsageCounter{}}
		for _, c := range s.Containers {
			if !leaf.Containers[c.Name] || counters[c.Name] != nil {
				continue
			}
			c.CPU, c.Memory = clampToRange(c.CPU, maxCores), clampToRange(c.Memory, maxBytes)
			counter := m.leaves[leaf.UID][c.Name]
			if counter == nil {
				counter = &UsageCounter{}
			}
			counter.addSample(s.Taken, c.CPU, c.Memory)
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
		m.node.addSample(latest, cpu, memory)
		reading.Node = m.node
	}
	return reading
}

// clampToRange clamps a value to the range from 0 to most. NaN becomes 0.
func clampToRange(v, most float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(v, most)
}
