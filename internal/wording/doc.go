// Package wording reads what other programs say in words only: an answer that has neither a
// reason nor a field for it. It is the only place that does (test/wording), and it knows
// nothing that Xylem itself wrote. Each function names the source of the words, which are
// no API: a release that changes them is treated as one that does not say it.
package wording
