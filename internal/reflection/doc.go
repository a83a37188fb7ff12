// Package reflection decides which classes of members are published in the host
// under their own names. Book has what the members have, as last seen in a synced
// cache; a View holds that against registrations and host classes, and rules, class
// by class, who offers it and what the host's class is to be. Deciding writes
// nothing and waits for nothing: the controller reflected_class carries it out, and
// cluster_registration tells on a registration what of it is not published.
//
// What a member offered before this manager started is read off the host's class
// itself (its labels) until the member is connected: one that is merely away keeps
// its offers.
package reflection
