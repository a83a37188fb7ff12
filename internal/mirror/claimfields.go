package mirror

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

const noDataSource = "volumes made from snapshots, other volumes or populators are not supported yet; make an empty claim and copy the data in a Pod"

// claimTable decides on every field of a claim's spec.
var claimTable = Table{
	Title:  "PersistentVolumeClaim spec (host to member)",
	root:   "spec",
	holder: reflect.TypeFor[corev1.PersistentVolumeClaimSpec](),
	Fields: []Field{
		{"accessModes", Keep, "never weakened: ReadWriteOncePod stays what it is"},
		{"selector", Keep, "chooses among the member's volumes; provisioners say what they think of it"},
		{"resources", Keep, "the same amount; later changes are carried over"},
		{"volumeName", Drop, "names a volume of the host; a leaf claim that has to have a certain volume gets its name from WithVolume"},
		{"storageClassName", Translate, "the member's class: the registration's exact rule, else the class parameter, else what follows the registration's prefix, else the same name"},
		{"volumeMode", Keep, "Block stays Block"},
		{"dataSource", Refuse, noDataSource},
		{"dataSourceRef", Refuse, noDataSource},
		{"volumeAttributesClassName", Keep, "the class of the same name in the member; it has to exist there"},
	},
}

var claimShape = claimTable.compile()

// claimStatusTable decides on every field of a leaf claim's status.
var claimStatusTable = Table{
	Title:  "PersistentVolumeClaim status (member to host)",
	root:   "status",
	holder: reflect.TypeFor[corev1.PersistentVolumeClaimStatus](),
	Fields: []Field{
		{"phase", Drop, "the host's PV controller's"},
		{"accessModes", Drop, "the host's PV controller's"},
		{"capacity", Translate, "storage alone: what the file system really has; the host's PV controller sets it once, at binding"},
		{"conditions", Translate, "those of resizing and of volume attributes, which a resizer and a kubelet set; the rest is the host's"},
		{"allocatedResources", Translate, "storage alone: the state of a resize, at most what the root requests, since the host's quotas count it"},
		{"allocatedResourceStatuses", Translate, "storage alone: the state of a resize"},
		{"currentVolumeAttributesClassName", Keep, "the member's resizer applied it"},
		{"modifyVolumeStatus", Keep, "the state of a change of volume attributes"},
		{"healthStatus", Drop, "alpha: hosts before 1.37 refuse a status that has it"},
	},
}

var claimStatusShape = claimStatusTable.compile()
