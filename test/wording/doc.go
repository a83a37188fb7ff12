// Package wording proves that no decision reads message text: what one controller has to
// know from another is a field, an annotation or a reason. A message is for people, and may
// be reworded in any release.
//
// The proof is static. It type-checks the source of the product and follows every text that
// is a message, through variables, parameters, results and concatenation, to where it is
// looked into: a search, a split, a regular expression or a comparison. Text that other
// programs provide is read in internal/wording alone.
package wording
