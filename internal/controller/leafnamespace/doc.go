// Package leafnamespace creates the member's namespaces when leaves need them, and deletes those
// that it created when they are empty. No other controller writes them.
//
// A namespace is needed while the registration admits it and the host's namespace of that name
// contains one of these objects: a Pod that is bound or nominated to the member's virtual node, a
// claim for which the scheduler chose that node, or a claim that is placed in the member. Xylem
// creates the member's namespace with Pod Security level "baseline", or with the host's level if
// that is stricter, and keeps the level and the stamp up to date. Pod Security labels that someone
// in the member set remain, unless the host requires a stricter level. Xylem never writes to a
// namespace that it did not create, even if the member's admin handed it over.
//
// If the member rejects a namespace, Xylem retries with backoff. Meanwhile, member.NamespaceRejections has the
// reason, which root_pvc and root_pod report on the namespace's claims and Pods.
//
// Xylem deletes a namespace that it created if, for a quiet period, it was not needed and contained
// no leaves. First, live lists of every namespaced resource that the member serves must prove that
// it contains only the objects that Kubernetes creates in every namespace. If Xylem is not allowed
// to list a resource, or an API group does not respond, the namespace remains, and Xylem checks it
// again later. A manager without the permission to list all resources in the member therefore never
// deletes a namespace there, which is safe. The role in config/member allows listing only built-in
// resources.
//
// An object that is pushed between the proof and the deletion is deleted with the namespace. While
// the namespace terminates, the API server rejects further pushes. Xylem then creates everything
// that is needed again. No data is lost: the PV of a mirrored volume has policy Retain, and a
// volume that is not mirrored yet has never been used.
package leafnamespace
