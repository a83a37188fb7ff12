package usage

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// none is what a counter has when it begins: metrics-server takes 0 for no figure.
	none = 1e-6
	// skew is how far the clock of a member may be ahead.
	skew = time.Minute
	// Figures beyond these are no container's.
	mostCores, mostBytes = 1e5, 1 << 60
)

// Leaf is a Pod that Xylem pushed, as it lives in the member.
type Leaf struct {
	// Pod in the host, which the leaf has its name from.
	Pod     types.NamespacedName
	UID     types.UID
	Created time.Time
	// Containers of the root.
	Containers map[string]bool
}

// Counter of one container, or of a node.
type Counter struct {
	// Since is when it began, and Taken when it was last added to.
	Since, Taken time.Time
	// CPU seconds since it began; Memory in bytes.
	CPU, Memory float64
}

// add a sample of the use since the sample before it.
func (c *Counter) add(taken time.Time, cpu, memory float64) {
	switch {
	case c.Taken.IsZero():
		*c = Counter{Since: taken, Taken: taken, CPU: none, Memory: memory}
	case taken.After(c.Taken):
		c.CPU += cpu * taken.Sub(c.Taken).Seconds()
		c.Taken, c.Memory = taken, memory
	}
}

// Reading is what a Meter has at a time.
type Reading struct {
	// Node is the sum of the Pods, without a time if there are none.
	Node Counter
	Pods []PodReading
}

// PodReading has the counters of a Pod's containers.
type PodReading struct {
	Pod        types.NamespacedName
	Containers map[string]Counter
}

// Meter counts what the leaves of one member use. The zero value has counted nothing.
type Meter struct {
	mu     sync.Mutex
	leaves map[types.UID]map[string]*Counter
	node   Counter
}

// Add the samples that were read at a time, of the leaves that there are; what is not among
// them is forgotten.
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

// within0 is a figure from 0 to the most; NaN is 0.
func within0(v, most float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(v, most)
}
