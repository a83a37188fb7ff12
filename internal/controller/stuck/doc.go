// Package stuck makes deletions visible that take longer than they should: of
// the host's volumes, claims and Pods that concern a member, and of the leaf
// objects there, each with its cause as far as it can be told. It goes by caches
// alone, and also while a member is away: then that is the cause.
//
// It writes nothing but events; cluster_registration shows the oldest.
package stuck
