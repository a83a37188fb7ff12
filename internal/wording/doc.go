// Package wording reads what other programs report only as text: answers without a reason
// or a field. Nothing else does (test/wording), and it never reads what Xylem itself wrote.
// Each function names the source of the text, which is no API: if a release changes it, the
// function reports nothing.
package wording
