// Package register implements `kubectl xylem register`, which registers a cluster as a member. In
// the member, it applies config/member and requests a token. In the host, it creates the Secret
// with the kubeconfig and the ClusterRegistration, and waits until the manager has connected.
// Another run repairs the registration and rotates the token. After a failure, the command undoes
// what it created, or reports which objects are left and how to remove them.
package register
