// Package hostsnapshot is the controller host_snapshot. It handles host contents for which no member
// is responsible: their source is not a volume of a member, their member is away or no longer
// registered, or an admin abandons them. It writes nothing to members.
package hostsnapshot
