// Package orphan finds the leaf volumes of a member that have no root: at each
// connect, at intervals, and when the caches give a reason to look. It goes by
// live reads of both sides alone, the member's first, and reports what it found
// into the account; what could not be read whole is reported as unknown.
//
// It writes nothing anywhere: an orphan's data are what somebody may still need,
// and absence is no evidence (I2). cluster_registration shows what is reported.
package orphan
