// Command workload runs Xylem on real control planes for some minutes, through the situations that
// its dashboard should show, while another command runs. It starts a host with two managers, and
// two members. It continually creates, expands and deletes claims of a mirroring class and of a
// promise class. Meanwhile:
//
//   - the driver of one member creates no disks for a while,
//   - that member is disconnected and reconnected,
//   - the host loses a volume while no manager runs, which leaves an orphan in the member, and
//     the managers are restarted.
//
// The other command gets the addresses of the managers' metrics as --url=ADDRESS after its own
// arguments. The workload interrupts it at the end, while the managers still run, and returns
// its result.
//
//	go run ./test/charts/workload COMMAND [ARGUMENT...]
package main
