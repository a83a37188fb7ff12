package environment

import (
	"fmt"
	"time"

	"github.com/xylem-io/xylem/internal/cli/doctor/facts"
	"github.com/xylem-io/xylem/internal/cli/doctor/result"
)

// snapshotPatience is how long the snapshot-controller may take to bind a VolumeSnapshot.
const snapshotPatience = 2 * time.Minute

// Snapshots checks whether the host's snapshot-controller runs, if VolumeSnapshots wait for it.
func Snapshots(h *facts.Host) []result.Finding {
	switch {
	case h.Snapshots.Item == nil:
		return nil
	case !*h.Snapshots.Item:
		return []result.Finding{result.Passed(result.CheckSnapshots, "", "the host serves no VolumeSnapshots")}
	}
	var waiting []string
	longest := time.Duration(0)
	for _, s := range h.Unbound.Items {
		if s.Age > snapshotPatience {
			waiting, longest = append(waiting, s.Namespace+"/"+s.Name), max(longest, s.Age)
		}
	}
	if len(waiting) > 0 {
		return []result.Finding{result.Problem(result.Warning, result.CheckSnapshots, "", fmt.Sprintf("no content has been bound to %s for up to %s. The host's snapshot-controller isn't running, or rejects the snapshots", result.Named("VolumeSnapshot", waiting), longest.Round(time.Second)),
			"Run one snapshot-controller in the host, and check the snapshots' events.")}
	}
	if !h.Unbound.Read {
		return nil
	}
	return []result.Finding{result.Passed(result.CheckSnapshots, "", "the host serves VolumeSnapshots, and none is waiting for the snapshot-controller")}
}
