// Package register is `kubectl xylem register`: it makes a cluster a member. In the
// member it applies config/member and asks for a token; in the host it makes the
// Secret with the kubeconfig and the ClusterRegistration, and waits until the
// manager has connected. Run again, it repairs and rotates. Whatever fails, what
// the run had made is undone, or it is said what is left and how to undo that.
package register
