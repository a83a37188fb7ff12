// Package leafnamespace creates the member's namespaces when leaves need them, and deletes
// those that it created when they are empty. No other controller writes them.
//
// A namespace is needed while the registration admits its name and the host's namespace of
// that name contains one of these objects: a Pod that is bound or nominated to the member's
// virtual node, a claim for which the scheduler chose that node, or a claim that is placed in
// the member. Xylem creates it with at least Pod Security level "baseline", or with the
// host's level if that is stricter, and keeps both current. Pod Security labels that someone
// in the member set remain, unless the host requires a stricter level. Xylem never writes to
// a namespace that existed before, even if it was handed over.
//
// Xylem deletes a namespace that it created if it was not needed and had no leaves for a
// quiet period. First, live lists of every namespaced resource that the member serves must
// prove that it contains only the objects that Kubernetes creates in every namespace. If
// Xylem may not list a resource, or an API group does not respond, the namespace remains and
// is checked again later. A manager without the permission to list all resources in the member
// therefore never deletes a namespace there, which is safe. The role in config/member only
// allows listing Kubernetes' own resources.
//
// An object that is pushed between the proof and the deletion is deleted with the namespace.
// The API server rejects further pushes while it terminates, and Xylem then creates
// everything needed again. No data is lost: the PV of a mirrored volume has policy Retain,
// and a volume that is not mirrored yet has never been used.
package leafnamespace
