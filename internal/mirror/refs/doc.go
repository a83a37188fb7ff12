// Package refs finds the ConfigMaps and Secrets that a Pod refers to, and builds the copies that
// its leaf Pod refers to. It is pure.
package refs
