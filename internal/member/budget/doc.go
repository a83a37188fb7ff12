// Package budget bounds what the answers of a member may take of this process: their
// length, their weight once decoded, the memory of all that are under way, and the pace of
// watches. It signs requests, and takes the token out of complaints.
package budget
