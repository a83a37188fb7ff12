// Package docs runs every command block in the documentation, page by page, like a reader who
// copies all of them into one terminal. It uses a host and two members on loopback, the programs
// that `make build` builds, and the pinned tools. KWOK does not run containers, so the test runs
// the manager as a process instead of in Pods.
package docs
