package main

import "github.com/xylem-io/xylem/internal/volume"

const volumesIntro = `# The life of a volume

Generated from the tables in [internal/volume](volume), by which root_pvc, root_pv, leaf_pv and host_volume go. Each of
them observes the volume that its request is about, and looks from top to bottom for the first row whose conditions all
hold. If the row names the controller, it takes the step; else it does nothing, and the event of what the other
controller writes brings it back.

The *host PV* is the PersistentVolume of the host that represents the volume, the *root claim* the claim that it is for.
*Leaf PV* and *leaf claim* are their counterparts in the member.
`

func volumesPage() ([]byte, error) { return []byte(volumesIntro + volume.Page()), nil }
