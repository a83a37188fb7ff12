// Command bench measures Xylem on real control planes: what going through two
// clusters costs beside one. Each figure stands beside its yardsticks, taken in the
// same run: native (the same claims and Pods in one cluster, no Xylem), floor (the
// bare PV controller, binding volumes that are there) and driver (the same objects,
// put into host and members by a script). See README.md.
package main
