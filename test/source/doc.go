// Package source proves statements about the product by its source. It loads and type-checks the
// source once. Each proof is a test, next to the list of its exceptions, each with its reason. An
// unnecessary exception fails the proof.
//
//	messages_test.go          no decision depends on message text
//	watches_test.go           every controller watches what it reads
//	live_reads_test.go        only package proof proves facts with live reads
//	step_needs_test.go        each step presents the evidence and the reasons that its table lists
//	placement_writes_test.go  two controllers never write a claim's placement at the same time
//	placement_rules_test.go   only package placement decides what may be placed in a member
//	needs_test.go             the table of who needs a disk names proofs that exist
//	import_rules_test.go      an import rule covers every package
//	change_table_test.go      the table "To change X, edit Y" names paths and identifiers that exist
//	style_test.go             messages follow the style guide
//	idioms_test.go            no text contains phrases that read as translated
//	names_test.go             identifiers have no word that the style guide replaces, and short ones have a reason
//
// # Messages
//
// Controllers share facts as fields, annotations or reasons. Messages are for people, and may change
// in any release. The proof follows every message through variables, parameters, results and
// concatenation to each place that inspects it: a search, a split, a regular expression or a
// comparison. Only internal/wording parses other programs' messages.
//
// # Watches
//
// If a controller reads an object that it does not watch, a change to that object does not enqueue a
// request, and the controller's decision stays wrong until another event. The proof follows every
// possible call from each controller's Reconcile. A read is a Get or List from a cache. The reader is
// a struct field, and readerFields (readers.go) maps each field to its cache. The watches come from
// the function that registers the controller. The proof fails if it cannot determine a reader or a
// kind, so that it never silently omits a read. Live reads do not count, because they are proofs and
// not observations.
package source
