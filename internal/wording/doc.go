// Package wording parses messages of other programs that report a fact only as text, without a
// reason or a field. No other package does so (test/source checks this), and this package never
// parses Xylem's own messages. Each function names the message's source. Such messages are not an
// API: if a release changes one, the function no longer matches it. For the messages of schedulers, the package
// also has the remedies, which depend on nothing else.
//
// Its part text formats parts of messages for people: counts, quoted names and suggestions.
package wording
