package transfer

import "strings"

// The scripts run in the two Pods, in a POSIX shell without pipefail. $VOLUME is the directory or
// device of the volume. If any program fails, the script fails.

// VolumeVariable is the environment variable that contains the volume's path for the scripts.
const VolumeVariable = "VOLUME"

// lostAndFound belongs to the file system and is not copied.
const lostAndFound = "./lost+found"

// tree contains the tar options that include everything that belongs to a file: contents, owners,
// modes, times, links, access control lists and extended attributes. Of the latter, it includes
// only user attributes and capabilities, because others, such as SELinux labels, are specific to
// the machine.
const tree = `--format=posix --numeric-owner --acls --xattrs --xattrs-include='user.*' --xattrs-include=security.capability`

// created contains the tar options for an archive that depends only on the files. The checkpoint
// dots keep an idle stream open while a checksum is calculated.
const created = tree + ` --create --one-file-system --sort=name --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime --checkpoint=20000 --checkpoint-action=dot --anchored --exclude=` + lostAndFound

const inVolume = `set -eu
cd "${VOLUME:?}"
`

// unframe reads frames from stdin, and writes their content to stdout. It fails if the last frame
// is missing. sh and GNU head read no more than they need. If the program that reads the content
// fails, unframe detects the failure at the next frame.
const unframe = `(while read -r size && [ "$size" != ` + lastFrame + ` ]; do head -c "$size" || exit 1; done
[ "${size:-}" = ` + lastFrame + ` ] || { echo "the data ended before its last frame" >&2; exit 1; })`

// sendFiles writes all files to stdout, and receiveFiles reads them from stdin, in frames.
// receiveFiles first removes what an earlier attempt left.
var (
	sendFiles    = inVolume + `tar ` + created + ` --sparse .`
	receiveFiles = inVolume + `find . -mindepth 1 -maxdepth 1 ! -path ` + lostAndFound + ` -exec rm -rf --one-file-system -- {} +
` + pipedScript(unframe, `tar `+tree+` --extract --file=- --same-owner --same-permissions --delay-directory-restore`) + `
sync -f .`
	sumFiles = inVolume + pipedScript(`tar `+created+` .`, `sha256sum`)
	// usedBytes estimates the number of bytes to copy.
	usedBytes = inVolume + `du --summarize --one-file-system --block-size=1 .`
)

// deviceBytes prints the size of the device. In the other scripts, $1 is the number of bytes to
// copy.
const (
	deviceBytes = `set -eu
blockdev --getsize64 "${VOLUME:?}" 2>/dev/null || stat -Lc %s "${VOLUME:?}"`
	readDevice = `dd if="${VOLUME:?}" bs=1M count="$1" iflag=count_bytes,fullblock status=progress`
	sendDevice = `set -eu
` + readDevice
)

var (
	receiveDevice = "set -eu\n" + pipedScript(unframe, `dd of="${VOLUME:?}" bs=1M iflag=fullblock conv=notrunc,fsync status=none`)
	sumDevice     = "set -eu\n" + pipedScript(readDevice, `sha256sum`)
)

// pipedScript returns a script that pipes one program into another, and fails if either fails.
func pipedScript(first, second string) string {
	return strings.NewReplacer("FIRST", first, "SECOND", second).Replace(`exec 4>&1
failed=$({ { FIRST || echo failed >&3; } | SECOND >&4; } 3>&1)
[ -z "$failed" ]`)
}
