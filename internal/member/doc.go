// Package member represents one member cluster for the controllers: a Connection, and the Link,
// which lasts as long as the connection, the fence and the member's identity. Package fleet
// creates and ends Links.
package member
