// Package ledger is the CSI driver's record: one line of JSON for each call, which the driver
// appends and syncs to disk before it responds. Tests use it to count leaked, surplus and lost
// volumes: it records what really happened, independently of what the clusters report.
package ledger
