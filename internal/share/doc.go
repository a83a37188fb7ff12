// Package share lets cached objects share what most of them have alike: labels, sizes, and
// the names of classes, drivers and members. A cache holds tens of thousands of claims and
// volumes, and each decoded one has maps of its own, of which one with a single entry takes
// several hundred bytes.
//
// Nobody writes to what is shared: cached objects are never changed, and readers get
// copies, or objects that they must not change (index.ReadOnly).
package share
