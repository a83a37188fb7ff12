// Package member represents one member cluster for the controllers: a Connection, and the Link,
// which ends when the connection or the fence is lost, or the member's identity changes. Package
// fleet creates and ends Links.
//
// Its part streams opens log streams and connections to a member's Pods through the member's API
// server, for the node API.
//
// Its part metrics defines the metrics of the connections to members and of their controllers'
// queues.
package member
