// Package member is one member cluster as controllers see it: a Connection, and the Link,
// which lasts as long as the connection, the fence and the member's identity do. Package
// fleet creates and ends Links.
package member
