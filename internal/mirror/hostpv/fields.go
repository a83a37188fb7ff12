package hostpv

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

const asAttributes = "the driver and the handle are kept in the host volume's attributes. The host volume's driver is always Xylem's, because with the real driver's name, the host's controllers would delete or resize the disk"

// Table lists the decision on every field of a leaf volume's spec.
var Table = fields.Table{
	Title:  "PersistentVolume spec (member to host)",
	Root:   "spec",
	Holder: reflect.TypeFor[corev1.PersistentVolumeSpec](),
	Fields: []fields.Field{
		{Path: "capacity", Decision: fields.Translate, Why: "the size of the volume; changes are copied"},
		{Path: "accessModes", Decision: fields.Keep, Why: "the modes that the volume supports"},
		{Path: "claimRef", Decision: fields.Translate, Why: "the root claim, with its UID in the host"},
		{Path: "persistentVolumeReclaimPolicy", Decision: fields.Translate, Why: "Retain if either cluster's policy is Retain; leaf volumes have policy Retain while in use"},
		{Path: "storageClassName", Decision: fields.Translate, Why: "the root claim's class"},
		{Path: "mountOptions", Decision: fields.Drop, Why: "nothing is mounted in the host"},
		{Path: "volumeMode", Decision: fields.Keep, Why: "Block stays Block"},
		{Path: "nodeAffinity", Decision: fields.Translate, Why: "the member's virtual node, by cluster ID; the leaf volume's own affinity applies in the member"},
		{Path: "volumeAttributesClassName", Decision: fields.Translate, Why: "the root claim's, because a PV and a claim bind only if they name the same class"},
		{Path: "csi.driver", Decision: fields.Translate, Why: asAttributes},
		{Path: "csi.volumeHandle", Decision: fields.Translate, Why: asAttributes},
		{Path: "csi.readOnly", Decision: fields.Keep, Why: "whether the volume is read-only"},
		{Path: "csi.fsType", Decision: fields.Keep, Why: "the file system on the volume"},
		{Path: "csi.volumeAttributes", Decision: fields.Translate, Why: "belongs to the member's driver; the host volume has Xylem's attributes instead"},
		{Path: "csi.controllerPublishSecretRef", Decision: fields.Drop, Why: "names a Secret in the member"},
		{Path: "csi.nodeStageSecretRef", Decision: fields.Drop, Why: "names a Secret in the member"},
		{Path: "csi.nodePublishSecretRef", Decision: fields.Drop, Why: "names a Secret in the member"},
		{Path: "csi.controllerExpandSecretRef", Decision: fields.Drop, Why: "names a Secret in the member"},
		{Path: "csi.nodeExpandSecretRef", Decision: fields.Drop, Why: "names a Secret in the member"},
		{Path: "gcePersistentDisk", Decision: fields.Translate, Why: asAttributes},
		{Path: "awsElasticBlockStore", Decision: fields.Translate, Why: asAttributes},
		{Path: "hostPath", Decision: fields.Translate, Why: asAttributes},
		{Path: "glusterfs", Decision: fields.Translate, Why: asAttributes},
		{Path: "nfs", Decision: fields.Translate, Why: asAttributes},
		{Path: "rbd", Decision: fields.Translate, Why: asAttributes},
		{Path: "iscsi", Decision: fields.Translate, Why: asAttributes},
		{Path: "cinder", Decision: fields.Translate, Why: asAttributes},
		{Path: "cephfs", Decision: fields.Translate, Why: asAttributes},
		{Path: "fc", Decision: fields.Translate, Why: asAttributes},
		{Path: "flocker", Decision: fields.Translate, Why: asAttributes},
		{Path: "flexVolume", Decision: fields.Translate, Why: asAttributes},
		{Path: "azureFile", Decision: fields.Translate, Why: asAttributes},
		{Path: "vsphereVolume", Decision: fields.Translate, Why: asAttributes},
		{Path: "quobyte", Decision: fields.Translate, Why: asAttributes},
		{Path: "azureDisk", Decision: fields.Translate, Why: asAttributes},
		{Path: "photonPersistentDisk", Decision: fields.Translate, Why: asAttributes},
		{Path: "portworxVolume", Decision: fields.Translate, Why: asAttributes},
		{Path: "scaleIO", Decision: fields.Translate, Why: asAttributes},
		{Path: "local", Decision: fields.Translate, Why: asAttributes},
		{Path: "storageos", Decision: fields.Translate, Why: asAttributes},
	},
}

var volumeShape = Table.Compile()
