package pvc

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// NoDataSource is why claims with a data source are refused.
const NoDataSource = "volumes made from snapshots, other volumes or populators are not supported yet; make an empty claim and copy the data in a Pod"

// Table decides on every field of a claim's spec.
var Table = fields.Table{
	Title:  "PersistentVolumeClaim spec (host to member)",
	Root:   "spec",
	Holder: reflect.TypeFor[corev1.PersistentVolumeClaimSpec](),
	Fields: []fields.Field{
		{Path: "accessModes", Decision: fields.Keep, Why: "never weakened: ReadWriteOncePod stays what it is"},
		{Path: "selector", Decision: fields.Keep, Why: "chooses among the member's volumes; provisioners say what they think of it"},
		{Path: "resources", Decision: fields.Keep, Why: "the same amount; later changes are carried over"},
		{Path: "volumeName", Decision: fields.Drop, Why: "names a volume of the host; a leaf claim that has to have a certain volume gets its name from WithVolume"},
		{Path: "storageClassName", Decision: fields.Translate, Why: "the member's class: the registration's exact rule, else the class parameter, else what follows the registration's prefix, else the same name"},
		{Path: "volumeMode", Decision: fields.Keep, Why: "Block stays Block"},
		{Path: "dataSource", Decision: fields.Refuse, Why: NoDataSource},
		{Path: "dataSourceRef", Decision: fields.Refuse, Why: NoDataSource},
		{Path: "volumeAttributesClassName", Decision: fields.Keep, Why: "the class of the same name in the member; it has to exist there"},
	},
}

var claimShape = Table.Compile()

// StatusTable decides on every field of a leaf claim's status.
var StatusTable = fields.Table{
	Title:  "PersistentVolumeClaim status (member to host)",
	Root:   "status",
	Holder: reflect.TypeFor[corev1.PersistentVolumeClaimStatus](),
	Fields: []fields.Field{
		{Path: "phase", Decision: fields.Drop, Why: "the host's PV controller's"},
		{Path: "accessModes", Decision: fields.Drop, Why: "the host's PV controller's"},
		{Path: "capacity", Decision: fields.Translate, Why: "storage alone: what the file system really has; the host's PV controller sets it once, at binding"},
		{Path: "conditions", Decision: fields.Translate, Why: "those of resizing and of volume attributes, which a resizer and a kubelet set; the rest is the host's"},
		{Path: "allocatedResources", Decision: fields.Translate, Why: "storage alone: the state of a resize, at most what the root requests, since the host's quotas count it"},
		{Path: "allocatedResourceStatuses", Decision: fields.Translate, Why: "storage alone: the state of a resize"},
		{Path: "currentVolumeAttributesClassName", Decision: fields.Keep, Why: "the member's resizer applied it"},
		{Path: "modifyVolumeStatus", Decision: fields.Keep, Why: "the state of a change of volume attributes"},
		{Path: "healthStatus", Decision: fields.Drop, Why: "alpha: hosts before 1.37 refuse a status that has it"},
	},
}

var claimStatusShape = StatusTable.Compile()
