// Package stuck reports deletions that take longer than expected, of the host's volumes, claims and
// Pods that concern a member, and of the leaf objects there, each with its cause, if known. It
// reads only caches, and also works while a member is away, which is then the cause.
//
// It writes only events; cluster_registration shows the oldest.
package stuck
