package doctor

import (
	"fmt"
	"time"
)

// snapshotPatience is how long the snapshot-controller may take to bind a VolumeSnapshot.
const snapshotPatience = 2 * time.Minute

// Snapshots checks whether the host's snapshot-controller runs, if VolumeSnapshots wait for it.
func judgeSnapshots(h *Host) []Finding {
	switch {
	case h.Snapshots.Item == nil:
		return nil
	case !*h.Snapshots.Item:
		return []Finding{Passed(CheckSnapshots, "", "the host serves no VolumeSnapshots")}
	}
	var waiting []string
	longest := time.Duration(0)
	for _, s := range h.Unbound.Items {
		if s.Age > snapshotPatience {
			waiting, longest = append(waiting, s.Namespace+"/"+s.Name), max(longest, s.Age)
		}
	}
	if len(waiting) > 0 {
		return []Finding{Problem(Warning, CheckSnapshots, "", fmt.Sprintf("no content has been bound to %s for up to %s. The host's snapshot-controller isn't running, or rejects the snapshots", Named("VolumeSnapshot", waiting), longest.Round(time.Second)),
			"Run one snapshot-controller in the host, and check the snapshots' events.")}
	}
	if !h.Unbound.Read {
		return nil
	}
	return []Finding{Passed(CheckSnapshots, "", "the host serves VolumeSnapshots, and none is waiting for the snapshot-controller")}
}
