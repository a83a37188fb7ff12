package mirror

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

const asAttributes = "stands as driver and handle in the volume attributes of the host volume, whose source is always Xylem's own: under the real plugin's name, the host's controllers would delete or resize the backend"

// volumeTable decides on every field of a leaf volume's spec.
var volumeTable = Table{
	Title:  "PersistentVolume spec (member to host)",
	root:   "spec",
	holder: reflect.TypeFor[corev1.PersistentVolumeSpec](),
	Fields: []Field{
		{"capacity", Translate, "how much storage there is; changes are carried over"},
		{"accessModes", Keep, "what the volume can do"},
		{"claimRef", Translate, "the root claim, with its UID in the host"},
		{"persistentVolumeReclaimPolicy", Translate, "Retain if either side says so; leaf volumes themselves stand at Retain while in use"},
		{"storageClassName", Translate, "the root claim's class"},
		{"mountOptions", Drop, "nothing is mounted in the host"},
		{"volumeMode", Keep, "Block stays Block"},
		{"nodeAffinity", Translate, "the member's virtual node, by cluster ID; where in the member the volume is reachable is the member's matter"},
		{"volumeAttributesClassName", Translate, "what the root claim names, without which the two do not bind"},
		{"csi.driver", Translate, asAttributes},
		{"csi.volumeHandle", Translate, asAttributes},
		{"csi.readOnly", Keep, "what the volume can do"},
		{"csi.fsType", Keep, "what is on the volume"},
		{"csi.volumeAttributes", Translate, "the member's driver's own; the host volume has Xylem's instead"},
		{"csi.controllerPublishSecretRef", Drop, "names a Secret of the member"},
		{"csi.nodeStageSecretRef", Drop, "names a Secret of the member"},
		{"csi.nodePublishSecretRef", Drop, "names a Secret of the member"},
		{"csi.controllerExpandSecretRef", Drop, "names a Secret of the member"},
		{"csi.nodeExpandSecretRef", Drop, "names a Secret of the member"},
		{"gcePersistentDisk", Translate, asAttributes},
		{"awsElasticBlockStore", Translate, asAttributes},
		{"hostPath", Translate, asAttributes},
		{"glusterfs", Translate, asAttributes},
		{"nfs", Translate, asAttributes},
		{"rbd", Translate, asAttributes},
		{"iscsi", Translate, asAttributes},
		{"cinder", Translate, asAttributes},
		{"cephfs", Translate, asAttributes},
		{"fc", Translate, asAttributes},
		{"flocker", Translate, asAttributes},
		{"flexVolume", Translate, asAttributes},
		{"azureFile", Translate, asAttributes},
		{"vsphereVolume", Translate, asAttributes},
		{"quobyte", Translate, asAttributes},
		{"azureDisk", Translate, asAttributes},
		{"photonPersistentDisk", Translate, asAttributes},
		{"portworxVolume", Translate, asAttributes},
		{"scaleIO", Translate, asAttributes},
		{"local", Translate, asAttributes},
		{"storageos", Translate, asAttributes},
	},
}

var volumeShape = volumeTable.compile()
