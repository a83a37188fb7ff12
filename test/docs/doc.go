// Package docs runs every command block of the documentation, page by page, as a
// reader would who copies them into one terminal: on a host and two members on
// loopback, with the programs that `make build` and the pinned tools make. KWOK runs
// no containers, so the manager's Pods have a process of the test run for them.
package docs
