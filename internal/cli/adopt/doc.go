// Package adopt is the command kubectl xylem adopt, which gives the host a volume that a member
// had before Xylem. An admin of both clusters runs it: it labels the volume in the member, which
// is the consent of that member's admin, and creates the PersistentVolume in the host that asks
// for it. It checks first, by live reads, all that the controllers check, with their code
// (package volume), and has both clusters check the writes before it makes either.
package adopt
