// Package leafnamespace creates the member's namespaces as leaves need them, and deletes
// those that it created when they are empty. It is their only writer.
//
// A namespace is needed while the host's namespace of that name has a Pod that is bound to,
// or nominated for, the member's virtual node, or a claim that the scheduler chose that
// node for or that is placed in the member, and the registration admits its name. Xylem
// creates it with Pod Security level "baseline" at least, and with the host's level if that
// is stricter, and keeps both current. Such labels that somebody in the member set stay,
// unless the host requires a stricter level. Xylem never writes to a namespace that existed
// before, handed over or not.
//
// Xylem deletes a namespace if it created it, does not need it, and has no leaves in it,
// all of that for a quiet period; and if live lists of every namespaced kind that the
// member serves prove that it holds only what Kubernetes itself puts into each namespace. A
// kind that may not be listed, or an API group that does not answer, proves nothing: then
// the namespace stays, and is checked again later. So a manager without the right to list
// all kinds in the member never deletes a namespace there, which is safe; the role in
// config/member allows it to list Kubernetes' own kinds only.
//
// Whatever is pushed between the proof and the deletion is deleted with the namespace:
// further pushes are rejected while it terminates, and everything needed is created again
// afterwards. No data are lost: a volume that was mirrored has policy Retain, and one that
// was not has never been used.
package leafnamespace
