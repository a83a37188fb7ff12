// Package stories tests Xylem as a whole, by what its users and admins see: the
// manager as a process of its own, with the rights of config/, between a host
// and members that are real clusters.
//
// All stories share one fleet and have a namespace each. After every story an
// oracle compares the members' disks with who may still want them (I1).
package stories
