// Package proof reads both clusters live before a write that destroys data, or that lets go
// of them, and returns what the reads showed as evidence. Only this package creates evidence,
// and package guarded deletes no leaf claim, and sets no leaf PV to Delete, without it.
//
// A method of Prover reports true and a proof, or false: then a cache is behind, as a rule,
// and the newer object's event enqueues the request. An error proves nothing. The reconciler
// puts the proofs together to an Evidence, in the order of their reads, and guarded asks it
// whether it covers the very object.
//
// Evidence expires. Each proof has to follow the one before it, and the write the last one,
// within seconds: a proof that was kept for later is none. How long one takes does not count,
// since a list of all volumes of a large host takes a while.
package proof
