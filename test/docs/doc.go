// Package docs runs every command block of the documentation, page by page, like a reader who
// copies them into one terminal. It uses a host and two members on loopback, and the programs
// from `make build` and the pinned tools. KWOK runs no containers, so a process of the test
// runs in place of the manager's Pods.
package docs
