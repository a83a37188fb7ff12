// Command bench measures Xylem on real control planes: the cost of two clusters compared with
// one. Each figure is compared with yardsticks from the same run: native (the same claims and
// Pods in one cluster without Xylem), floor (only the PV controller, binding existing volumes),
// driver (a script that creates the same objects in host and members) and plain mirror (the
// simplest mirror that works). See README.md.
package main
