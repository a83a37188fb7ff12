// Package deregister implements `kubectl xylem deregister`. It shows which of the host's Pods,
// claims and volumes a member has and what will happen to them, makes the manager leave the member,
// and removes the objects that register created. It never removes the ownership records of volumes
// that remain in the member.
package deregister
