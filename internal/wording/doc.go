// Package wording parses texts of other programs that report a fact only as text, without a
// reason or a field. No other package does that (test/wording), and this one never parses
// Xylem's own texts. Each function names the source of the text. Such texts are no API: if a
// release changes one, the function no longer matches it.
package wording
