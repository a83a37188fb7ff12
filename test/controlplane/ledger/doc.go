// Package ledger is the CSI driver's book: one line of JSON for each call that
// it answered, appended and synced to disk before the answer is given. Tests
// count leaks, surplus volumes and lost ones with it: what it says happened did
// happen, whatever the clusters believe.
package ledger
