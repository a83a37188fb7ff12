// Package wording proves that no decision depends on message text. Controllers share facts as
// fields, annotations or reasons. Messages are for people, and may change in any release.
//
// The proof is static. It type-checks the product's source and follows every message through
// variables, parameters, results and concatenation to each place that inspects it: a search, a
// split, a regular expression or a comparison. Only internal/wording parses other programs'
// messages.
//
// The package also checks the style of what people read: messages follow the style guide's rules
// (style.go), and no text contains phrases that read as translated (idioms.go).
package wording
