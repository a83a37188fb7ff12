package snapshot

import (
	"reflect"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// SnapshotFieldTable lists the decision on every field of a VolumeSnapshot's spec.
var SnapshotFieldTable = fields.Table{
	Title:      "VolumeSnapshot spec (host to member)",
	PathPrefix: "spec",
	StructType: reflect.TypeFor[snapshotv1.VolumeSnapshotSpec](),
	Fields: []fields.Field{
		{Path: "source.persistentVolumeClaimName", Decision: fields.Keep, Why: "the leaf claim has the name of its root"},
		{Path: "source.volumeSnapshotContentName", Decision: fields.Drop, Why: "names a content in the host; Xylem takes snapshots only of claims, and reports other sources as an error in the content's status"},
		{Path: "volumeSnapshotClassName", Decision: fields.Translate, Why: "the member's class: by the registration's exact rule, else the class parameter, else the registration's prefix, else the same name; the class's driver must be the leaf volume's driver"},
	},
}

// ContentStatusFieldTable lists the decision on every field of a leaf content's status.
var ContentStatusFieldTable = fields.Table{
	Title:      "VolumeSnapshotContent status (member to host)",
	PathPrefix: "status",
	StructType: reflect.TypeFor[snapshotv1.VolumeSnapshotContentStatus](),
	Fields: []fields.Field{
		{Path: "snapshotHandle", Decision: fields.Translate, Why: "the member's cluster ID and the name of the leaf content; the driver's own handle is in the annotation `xylem.io/handle`"},
		{Path: "creationTime", Decision: fields.Keep, Why: "by the clock of the member's storage system"},
		{Path: "restoreSize", Decision: fields.Translate, Why: "copied, unless it is negative, which the host would reject"},
		{Path: "readyToUse", Decision: fields.Translate, Why: "true only while the member has both the snapshot and its content"},
		{Path: "error", Decision: fields.Translate, Why: "the driver's message as plain text, or why Xylem cannot take or restore the snapshot"},
		{Path: "volumeGroupSnapshotHandle", Decision: fields.Drop, Why: "Xylem does not mirror group snapshots"},
	},
}
