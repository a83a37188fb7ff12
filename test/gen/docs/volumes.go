package main

import "github.com/xylem-io/xylem/internal/volume/lifecycle"

const volumesIntro = `# The life of a claim and its volume

` + "`make generate`" + ` writes this page from the table in [internal/volume/lifecycle](volume/lifecycle), which root_pvc, root_pv,
leaf_pv, host_volume and promise share. Each of them observes what its request is about, and looks for the first row, from
top to bottom, whose conditions all hold. If the row names that controller, it takes the step. Otherwise it does nothing, and
the event of the other controller's write enqueues its request again.

| Word | Meaning |
|---|---|
| root claim | the user's claim in the host |
| host PV | the PersistentVolume of the host that represents the volume, or a promise |
| leaf claim, leaf PV | their counterparts in the member |
| it | the claim or the volume that the section is about |
| mirrored | a host PV represents it |
| stamped | it carries Xylem's labels and annotations for this host |
| placed | an annotation of the root claim names the member that has it |
| ended | Released, or Failed |
| free | without claimRef, or Available |
| bound | root claim and host PV name each other |
| finalizer | Xylem's, on the host PV |
| terminating | somebody has deleted it, and finalizers keep it |
| retained | its policy is Retain |
| secured | the leaf PV is retained, and stamped if a leaf claim has it |
| to be destroyed | the policies on both sides are Delete, and the leaf PV is stamped or gone; otherwise it is kept |
| replaced | a host PV represents an earlier leaf PV of the same name |
`

func volumesPage() ([]byte, error) { return []byte(volumesIntro + lifecycle.Page()), nil }
