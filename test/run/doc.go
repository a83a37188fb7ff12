// Command run executes the steps of `make test` (tier "quick") and the further steps of `make test-all`
// (tier "rest"), one after the other. Each step is one or more targets of the Makefile.
//
// It checks that the machine has the memory and disk space, that no other run is in progress, and how
// many processes can run the stories. It continues after a failed step, so that one run reports all
// failures. At the end, it prints the logs of the failed stories, and a table of the steps: what ran,
// its wall time, CPU time and memory. A run that ends early, for whatever reason, leaves no process.
package main
