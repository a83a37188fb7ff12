// Package refs finds the ConfigMaps and Secrets that a Pod refers to, and builds their copies,
// to which its leaf Pod refers. It is pure.
package refs
