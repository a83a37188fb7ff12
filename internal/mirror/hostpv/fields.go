package hostpv

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

const keptAsAttributes = "the driver and the handle are kept in the host volume's attributes. The host volume's driver is always Xylem's, because with the real driver's name, the host's controllers would delete or resize the disk"

// VolumeFieldTable lists the decision on every field of a leaf volume's spec.
var VolumeFieldTable = fields.Table{
	Title:      "PersistentVolume spec (member to host)",
	PathPrefix: "spec",
	StructType: reflect.TypeFor[corev1.PersistentVolumeSpec](),
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
		{Path: "csi.driver", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "csi.volumeHandle", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "csi.readOnly", Decision: fields.Keep, Why: "whether the volume is read-only"},
		{Path: "csi.fsType", Decision: fields.Keep, Why: "the file system on the volume"},
		{Path: "csi.volumeAttributes", Decision: fields.Translate, Why: "belongs to the member's driver; the host volume has Xylem's attributes instead"},
		{Path: "csi.controllerPublishSecretRef", Decision: fields.Drop, Why: "names a Secret in the member"},
		{Path: "csi.nodeStageSecretRef", Decision: fields.Drop, Why: "names a Secret in the member"},
		{Path: "csi.nodePublishSecretRef", Decision: fields.Drop, Why: "names a Secret in the member"},
		{Path: "csi.controllerExpandSecretRef", Decision: fields.Drop, Why: "names a Secret in the member"},
		{Path: "csi.nodeExpandSecretRef", Decision: fields.Drop, Why: "names a Secret in the member"},
		{Path: "gcePersistentDisk", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "awsElasticBlockStore", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "hostPath", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "glusterfs", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "nfs", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "rbd", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "iscsi", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "cinder", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "cephfs", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "fc", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "flocker", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "flexVolume", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "azureFile", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "vsphereVolume", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "quobyte", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "azureDisk", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "photonPersistentDisk", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "portworxVolume", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "scaleIO", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "local", Decision: fields.Translate, Why: keptAsAttributes},
		{Path: "storageos", Decision: fields.Translate, Why: keptAsAttributes},
	},
}

var volumeDecisions = VolumeFieldTable.CompileDecisions()
