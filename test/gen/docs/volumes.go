package main

import (
	"fmt"
	"strings"

	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

const volumesIntro = `# The life of a claim and its volume

` + "`make generate`" + ` writes this page from the table in [internal/volume/lifecycle](volume/lifecycle), which root_pvc, root_pv,
leaf_pv, host_volume and promise share. For each request, the controller observes the objects and finds the first row, from
top to bottom, whose conditions all hold. If the row names that controller, it takes the step. Otherwise, it does nothing,
and the event from the other controller's write enqueues its request again.

The table of steps follows. Its third column names the type of evidence (bold) and the proofs that a step needs; packages proof,
proof/dropping, proof/placing and proof/adoption describe them. Its last column lists the reasons that the controller may
report when it takes the step, or if it cannot. The last table lists who may need a volume's data.

| Word | Meaning |
|---|---|
| root claim | the user's claim in the host |
| host PV | the host's PersistentVolume that represents the volume, or a promise |
| leaf claim, leaf PV | their counterparts in the member |
| it | the claim or the volume that the section is about |
| mirrored | a host PV represents it |
| stamped | it carries Xylem's labels and annotations for this host |
| placed | an annotation on the root claim names the member that has the claim |
| ended | Released, or Failed |
| free | without claimRef, or Available |
| bound | the root claim and the host PV refer to each other |
| finalizer | Xylem's, on the host PV |
| terminating | it has a deletion timestamp, and finalizers still keep it |
| retained | its policy is Retain |
| secured | the leaf PV is retained, and stamped if a leaf claim is bound to it |
| to be destroyed | the policies on both sides are Delete, and the leaf PV is stamped or gone; otherwise, the volume is kept |
`

func volumesPage() ([]byte, error) {
	var b strings.Builder
	b.WriteString(volumesIntro + lifecycle.MarkdownPage() + needsIntro)
	for _, need := range proof.Needs {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", need.Who, strings.Join(need.References, "`, `"), need.Until, need.Proof)
	}
	return []byte(b.String()), nil
}

// needsIntro precedes the table of needs.
const needsIntro = `
## Who may need the data

Before Xylem destroys a volume or a snapshot, each of these needs must have ended. Package guarded requires the proof VolumeUnneeded or
SnapshotUnneeded for each destruction, besides the evidence above. A feature that uses a volume's data adds a row to proof.Needs.
TestNeedsAreRegistered fails if a feature uses a field of Kubernetes' APIs, or a key of its own, that no row lists.

| Needed by | which refers to it by | until | Proof |
|---|---|---|---|
`
