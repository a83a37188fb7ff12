package pvc

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// ClaimFieldTable lists the decision on every field of a claim's spec.
var ClaimFieldTable = fields.Table{
	Title:      "PersistentVolumeClaim spec (host to member)",
	PathPrefix: "spec",
	StructType: reflect.TypeFor[corev1.PersistentVolumeClaimSpec](),
	Fields: []fields.Field{
		{Path: "accessModes", Decision: fields.Keep, Why: "never weakened: ReadWriteOncePod stays ReadWriteOncePod"},
		{Path: "selector", Decision: fields.Keep, Why: "selects among the member's volumes; many provisioners reject a selector. Only the selector of a copy that `kubectl xylem move` creates is omitted, because it excludes the existing volumes of the host"},
		{Path: "resources", Decision: fields.Keep, Why: "the same amount; Xylem also copies later changes"},
		{Path: "volumeName", Decision: fields.Drop, Why: "names a volume in the host; if the leaf claim needs a specific volume, Xylem sets that volume's name"},
		{Path: "storageClassName", Decision: fields.Translate, Why: "the member's class: by the registration's exact rule, else the class parameter, else the registration's prefix, else the same name"},
		{Path: "volumeMode", Decision: fields.Keep, Why: "Block stays Block"},
		{Path: "dataSource", Decision: fields.Keep, Why: "the source's leaf has the same name, and Xylem creates the claim in the member that has the source; Xylem rejects sources other than claims and snapshots unless a registration lists their kind (`spec.storage.dataSources`)"},
		{Path: "dataSourceRef.apiGroup", Decision: fields.Keep, Why: "like `dataSource`"},
		{Path: "dataSourceRef.kind", Decision: fields.Keep, Why: "like `dataSource`"},
		{Path: "dataSourceRef.name", Decision: fields.Keep, Why: "like `dataSource`"},
		{Path: "dataSourceRef.namespace", Decision: fields.Refuse, Why: "Xylem does not copy data from another namespace"},
		{Path: "volumeAttributesClassName", Decision: fields.Translate, Why: "the member's class: by the registration's exact rule, else the class parameter, else the registration's prefix, else the same name; later changes are copied"},
	},
}

var claimDecisions = ClaimFieldTable.CompileDecisions()

// ClaimStatusFieldTable lists the decision on every field of a leaf claim's status.
var ClaimStatusFieldTable = fields.Table{
	Title:      "PersistentVolumeClaim status (member to host)",
	PathPrefix: "status",
	StructType: reflect.TypeFor[corev1.PersistentVolumeClaimStatus](),
	Fields: []fields.Field{
		{Path: "phase", Decision: fields.Drop, Why: "the host's PV controller owns it"},
		{Path: "accessModes", Decision: fields.Drop, Why: "the host's PV controller owns it"},
		{Path: "capacity", Decision: fields.Translate, Why: "storage only: the size of the file system; the host's PV controller sets it once, when it binds the claim"},
		{Path: "conditions", Decision: fields.Translate, Why: "the conditions for resizing and volume attributes, which a resizer and a kubelet set; the host owns the others"},
		{Path: "allocatedResources", Decision: fields.Translate, Why: "storage only: the state of a resize, limited to what the root requests, since the host's quotas count it"},
		{Path: "allocatedResourceStatuses", Decision: fields.Translate, Why: "storage only: the state of a resize"},
		{Path: "currentVolumeAttributesClassName", Decision: fields.Translate, Why: "the class that the member's resizer applied, under the host's name for the class, since the host's quotas count it"},
		{Path: "modifyVolumeStatus", Decision: fields.Translate, Why: "the state of a change to the volume's attributes, with the host's name for the class"},
		{Path: "healthStatus", Decision: fields.Drop, Why: "alpha: API servers before 1.37 reject a status with this field"},
	},
}

var claimStatusDecisions = ClaimStatusFieldTable.CompileDecisions()
