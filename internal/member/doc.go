// Package member is one member cluster as controllers see it: a Connection, and the Link
// that lasts as long as this, the fence and the member's identity do. Package fleet makes
// and ends links.
package member
