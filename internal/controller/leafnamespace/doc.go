// Package leafnamespace makes the member's namespaces as leaves need them, and
// removes those that it made when they hold nothing any more. It is their only
// writer.
//
// A namespace is needed while the host's namespace of that name has a Pod that
// is bound to, or nominated for, the member's virtual node, or a claim that the
// scheduler chose that node for or that is placed in the member, and the
// registration admits its name. Xylem creates it with Pod Security level "baseline"
// at least, and with the host's level where that is stricter, and keeps both
// current. Labels of that kind that somebody in the member set stay, unless the
// host asks for a stricter level. A namespace that was there before, handed over or
// not, is never written to.
//
// It is removed when it was made by us, is not needed, and holds none of our
// leaves, all of that for a quiet period; and when live lists of every
// namespaced kind that the member serves prove that it holds nothing but what
// Kubernetes itself puts into each namespace. A kind that may not be listed, or
// an API group that does not answer, proves nothing: then the namespace stays,
// and is looked at again later. So a manager without the permission to list all
// kinds in the member never removes a namespace there, which is safe; the role in
// config/member lets it list Kubernetes' own kinds, no others.
//
// What is pushed between the proof and the deletion goes with the namespace: it
// is refused as terminating then (mirror.UseNamespace), and made anew, with all
// that is wanted there, when it is gone. No data are lost by it: a volume that
// was mirrored stands at Retain, and one that was not has never been used.
package leafnamespace
