// Package stories tests Xylem as a whole, by what its users and admins see. The manager is a separate
// process with the permissions of config/, between a host and members that are real clusters. All
// stories share one fleet, and each has its own namespace. After every story, an oracle checks that
// each disk of the members has an owner (I1).
package stories
