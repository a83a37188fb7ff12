// Package member represents one member cluster for the controllers: a Connection, and the Link,
// which ends when the connection or the fence is lost, or the member's identity changes. Package
// fleet creates and ends Links.
package member
