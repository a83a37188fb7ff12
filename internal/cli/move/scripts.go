package move

import "strings"

// The scripts run in the two Pods, in a POSIX shell without pipefail. $VOLUME is the directory or
// device of the volume. Every failure of a program ends the script with an error.

// lostAndFound belongs to the file system, not to its user.
const lostAndFound = "./lost+found"

// tree are tar's options for all that belongs to a file: contents, owners, modes, times, links,
// access control lists and extended attributes. Of the latter, it takes the users' and the files'
// capabilities. The others, such as SELinux labels, belong to the machine. A checkpoint's dot keeps
// an idle stream open while a checksum is calculated.
const tree = `--format=posix --numeric-owner --acls --xattrs --xattrs-include='user.*' --xattrs-include=security.capability`

// created are options for creating an archive that depends only on the files.
const created = tree + ` --create --one-file-system --sort=name --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime --checkpoint=20000 --checkpoint-action=dot --anchored --exclude=` + lostAndFound

const inVolume = `set -eu
cd "${VOLUME:?}"
`

// sendFiles writes all files to stdout, and receiveFiles reads them from stdin. The latter first
// removes what an earlier attempt left.
var (
	sendFiles    = inVolume + `tar ` + created + ` --sparse .`
	receiveFiles = inVolume + `find . -mindepth 1 -maxdepth 1 ! -path ` + lostAndFound + ` -exec rm -rf --one-file-system -- {} +
tar ` + tree + ` --extract --file=- --same-owner --same-permissions --delay-directory-restore
sync -f .`
	sumFiles = inVolume + piped(`tar `+created+` .`, `sha256sum`)
	// usedBytes estimates how much is to be copied.
	usedBytes = inVolume + `du --summarize --one-file-system --block-size=1 .`
)

// deviceBytes prints the size of the device. $1 of the others is how much of it is copied.
const (
	deviceBytes = `set -eu
blockdev --getsize64 "${VOLUME:?}" 2>/dev/null || stat -Lc %s "${VOLUME:?}"`
	readDevice = `dd if="${VOLUME:?}" bs=1M count="$1" iflag=count_bytes,fullblock status=progress`
	sendDevice = `set -eu
` + readDevice
	receiveDevice = `set -eu
dd of="${VOLUME:?}" bs=1M iflag=fullblock conv=notrunc,fsync status=none`
)

var sumDevice = "set -eu\n" + piped(readDevice, `sha256sum`)

// piped returns a pipe that fails if one of its programs fails.
func piped(first, second string) string {
	return strings.NewReplacer("FIRST", first, "SECOND", second).Replace(`exec 4>&1
failed=$({ { FIRST || echo failed >&3; } | SECOND >&4; } 3>&1)
[ -z "$failed" ]`)
}
