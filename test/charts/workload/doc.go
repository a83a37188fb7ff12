// Command workload runs Xylem on real control planes for a few minutes, while another command
// records the dashboard. It starts a host with two managers, and two members. It continually
// creates, expands and deletes claims of a mirroring class and of a promise class. During this
// time, it causes the incidents that the dashboard should show:
//
//   - The driver of one member temporarily fails to create disks.
//   - The same member is disconnected and reconnected.
//   - The other member temporarily does not admit the claims' namespace.
//   - The host loses a volume while no manager runs, which leaves an orphan in the member. Then
//     the managers start again.
//
// The other command receives the addresses of the managers' metrics as --url=ADDRESS after its own
// arguments. The workload interrupts it at the end, while the managers still run, and returns
// its result.
//
//	go run ./test/charts/workload COMMAND [ARGUMENT...]
package main
