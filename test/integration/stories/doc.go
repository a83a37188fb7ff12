// Package stories tests Xylem as a whole, as its users and admins see it. The manager is a separate
// process with the permissions of config/. The host and the members are real control planes. All
// stories share one fleet, and each has its own namespace. After every story, an oracle checks that
// each disk of the members has an owner (I1).
package stories
