// Package hostsnapshot is the controller host_snapshot. It looks after the contents of the host
// that no member answers for: their source is no volume of a member, their member is away or no
// longer registered, or an admin abandons them. It writes nothing to members.
package hostsnapshot
