// Package deregister is `kubectl xylem deregister`: it shows what a member has of the
// host's Pods, claims and volumes and what will become of them, has the manager leave
// the member in order, and removes what register made. It never removes what says
// whose the volumes are that stay there.
package deregister
