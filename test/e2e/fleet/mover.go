package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/xylem-io/xylem/internal/cli/move"
	"github.com/xylem-io/xylem/test/image"
)

// MoverImage is the image of the Pods of `kubectl xylem move`. The tests pack it from the programs
// of a kind node, which also runs Debian, so they need no registry.
const MoverImage = move.DefaultImage

// moverPrograms are the programs of the mover's image: those that a move runs, and those with which
// the tests create files.
var moverPrograms = []string{
	"sh", "tar", "find", "head", "du", "dd", "sha256sum", "stat", "sync", "blockdev", "rm", "sleep",
	"xargs", "mkdir", "split", "seq", "ln", "chown", "chmod", "truncate", "wc", "sort",
}

// packed writes an archive with programs, and the libraries that they need. Debian links /bin and
// /lib to /usr.
const packed = `set -eu
cd /
for name in "$@"; do
  for program in /usr/bin/"$name" /usr/sbin/"$name"; do
    [ -e "$program" ] || continue
    echo "$program"
    ldd "$program" | sed -n 's/^[^/]*\(\/[^ ]*\) (0x.*/\1/p'
  done
done | sort -u | while read -r path; do
  echo "$(readlink -f "$(dirname "$path")")/$(basename "$path")"
  readlink -f "$path"
done | sort -u | sed 's/^.//' | tar --create --no-recursion --files-from=- bin sbin lib lib64`

// mover packs the mover's image from the programs of a node.
func mover(n nodes.Node) (v1.Image, error) {
	var archive, failed bytes.Buffer
	script := n.Command("sh", append([]string{"-c", packed, "sh"}, moverPrograms...)...).SetStdout(&archive).SetStderr(&failed)
	if err := script.Run(); err != nil {
		return nil, fmt.Errorf("pack the programs of %s: %w\n%s", n, err, strings.TrimSpace(failed.String()))
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	if err != nil {
		return nil, fmt.Errorf("pack the programs of %s: %w", n, err)
	}
	scratch, err := image.Scratch("linux", runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(scratch, layer)
	if err != nil {
		return nil, fmt.Errorf("pack the mover's image: %w", err)
	}
	return img, nil
}

// Size returns the total size of the files in the provisioner's directories on a member's nodes, in
// bytes. It includes only directories whose names match a shell pattern.
func (k *Kind) Size(ctx context.Context, member, pattern string) (int64, error) {
	var total int64
	err := k.eachNode(member, func(n nodes.Node) error {
		script := `find ` + provisioned + ` -path "` + provisioned + `/$1/*" -type f -printf '%s\n' 2>/dev/null | awk '{ sum += $1 } END { printf "%d", sum }'`
		out, err := exec.CommandContext(ctx, "docker", "exec", n.String(), "sh", "-c", script, "sh", pattern).Output() //nolint:gosec // Our own node.
		if err != nil {
			return fmt.Errorf("measure the disks on %s: %w", n, err)
		}
		size, err := strconv.ParseInt(string(out), 10, 64)
		if err != nil {
			return fmt.Errorf("measure the disks on %s: %w", n, err)
		}
		total += size
		return nil
	})
	return total, err
}
