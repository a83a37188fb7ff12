// Command workload lets Xylem live for some minutes through what its dashboard is
// for, on real control planes, and runs another command meanwhile: a host with two
// managers, and two members, in which claims are created, grown and deleted all the time,
// of a class that mirrors and of one that promises. On the way
//
//   - the driver of one member makes no disks for a while,
//   - that member is cut off, and comes back,
//   - the host loses a volume while no manager runs, which leaves an orphan in the
//     member, and the managers are started again.
//
// The other command gets the addresses of the managers' metrics as --url=ADDRESS, once
// for each, after its own arguments. It is interrupted when all that is over, and the
// managers still run then; what it returns is returned.
//
//	go run ./test/charts/workload COMMAND [ARGUMENT...]
package main
