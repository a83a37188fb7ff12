// Package epoch reads, writes and compares the fence's epochs in the Lease in a member and in the
// host's record. Epochs that disagree show that one of the clusters was restored. All functions are
// pure.
package epoch
