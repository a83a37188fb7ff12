// Package probe renews a member's fence, and so detects whether the member still responds.
package probe
