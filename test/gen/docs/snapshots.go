package main

import "github.com/xylem-io/xylem/internal/snapshot"

const snapshotsIntro = `# The life of a snapshot

` + "`make generate`" + ` writes this page from the table in [internal/snapshot](snapshot), which root_snapshot,
leaf_snapshot and host_snapshot share, as the volume controllers share [the table for volumes](VOLUMES.md). For each
request, the controller observes the objects and finds the first row, from top to bottom, whose conditions all hold. If
the row names that controller and a step, the controller takes the step. Otherwise, one controller writes the row's
message, or the member's status, to the status of the host content: host_snapshot in its own rows, and leaf_snapshot in
all other rows.

The last table lists the steps. Its third column names the type of evidence (bold) and the proofs that a step needs; packages proof
and proof/snapshots describe them. Its last column lists the reasons that the controller may report when it takes the
step, or if it cannot.

| Word | Meaning |
|---|---|
| root | the user's VolumeSnapshot in the host |
| host content | its VolumeSnapshotContent, which the host's snapshot-controller creates |
| leaf, leaf content | their counterparts in the member; the member's snapshot-controller creates the leaf content |
| placed | an annotation on the host content names the member that has, or may have, the snapshot |
| announced | the host's snapshot-controller has annotated the host content: the root is being deleted, or is gone |
| ended | the root is gone, or is being deleted |
| held | the host content has the finalizer that its driver removes |
| stamped | the leaf content carries Xylem's labels and annotations for this root, and the member's deletion policy |
| begun | the csi-snapshotter has annotated the leaf content, or written its status; before that, the driver has no snapshot, and a stamp could make the csi-snapshotter's write fail |
| secured | the leaf content is stamped, and its policy is Retain |
| recorded | the host content has the UID of the leaf content, and the handle that the driver gave it |
| replaced | the member has a different leaf, or leaf content, than the host content records |
| too long | for --silent-after: the snapshot-controller has not responded to the leaf, the csi-snapshotter has not responded to the leaf content (ten minutes more if it has begun), or an earlier root's leaf has its name |
| released | an admin abandons the snapshot, or its member is no longer registered |
| to be destroyed | both deletion policies are Delete, and the root's deletion is announced; otherwise, the snapshot is kept |

`

func snapshotsPage() ([]byte, error) { return []byte(snapshotsIntro + snapshot.RenderMarkdown()), nil }
