package main

import "github.com/xylem-io/xylem/internal/volume"

const volumesIntro = `# The life of a volume

` + "`make generate`" + ` writes this page from the tables in [internal/volume](volume), which root_pvc, root_pv, leaf_pv and host_volume
share. Each of them observes the volume of its request, and looks for the first row, from top to bottom, whose conditions all
hold. If the row names that controller, it takes the step. Otherwise it does nothing, and the event of the other controller's
write enqueues its request again.

The *host PV* is the PersistentVolume of the host that represents the volume, and the *root claim* is the claim that it is for.
*Leaf PV* and *leaf claim* are their counterparts in the member.
`

func volumesPage() ([]byte, error) { return []byte(volumesIntro + volume.Page()), nil }
