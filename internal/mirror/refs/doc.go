// Package refs finds the ConfigMaps and Secrets that a Pod refers to, and makes the copies
// of them that its leaf Pod refers to instead. It is pure.
package refs
