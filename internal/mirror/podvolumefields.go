package mirror

// What several kinds of volumes are refused for.
const (
	inlineCSI = "inline volumes of a CSI driver are made outside of any claim, where nothing of them can be shown or counted; use a PersistentVolumeClaim"
	viaCSI    = "served by a CSI driver since its plugin left Kubernetes, so refused as an inline CSI volume; use a PersistentVolumeClaim"
	noPlugin  = "its plugin has been removed from Kubernetes; use a PersistentVolumeClaim"
)

// podVolumeFields decide on every kind of volume.
var podVolumeFields = []Field{
	{"volumes[].name", Keep, "mounts name it"},
	{"volumes[].persistentVolumeClaim", Keep, "the leaf claim has the root claim's name"},
	{"volumes[].ephemeral", Translate, "becomes a plain claim `<pod>-<volume>`, which the host's controller makes and Xylem pushes; the member would want the claim to be owned by its own Pod"},
	{"volumes[].configMap", Translate, "names the ConfigMap's copy, `<name>.xylem-<digest>`, which no object of the member's own can be mistaken for; items stay the same. `kube-root-ca.crt` is the member's, as every namespace has its own"},
	{"volumes[].secret", Translate, "names the Secret's copy, as configMap"},
	{"volumes[].downwardAPI", Keep, "tells the leaf's fields"},
	{"volumes[].projected.defaultMode", Keep, "file modes"},
	{"volumes[].projected.defaultUser", Keep, "whose the files are; numbers mean the same everywhere"},
	{"volumes[].projected.sources[].configMap", Translate, "names the ConfigMap's copy, as configMap"},
	{"volumes[].projected.sources[].secret", Translate, "names the Secret's copy, as configMap"},
	{"volumes[].projected.sources[].downwardAPI", Keep, "tells the leaf's fields"},
	{"volumes[].projected.sources[].serviceAccountToken", Refuse, "a token would be the member's, for a stranger; API clients in Pods are a later capability, so remove the volume (the one that admission puts into every Pod is left out without asking)"},
	{"volumes[].projected.sources[].clusterTrustBundle", Refuse, "trust bundles are cluster-wide objects of the host; put the certificates into a ConfigMap"},
	{"volumes[].projected.sources[].podCertificate", Refuse, "the certificate would be issued by the member, for a stranger; put a certificate into a Secret"},
	{"volumes[].emptyDir", Keep, "made on the member's real node"},
	{"volumes[].hostPath", Keep, "a path on the member's real node; judged by the member's Pod Security admission"},
	{"volumes[].image", Keep, "pulled by the member"},
	{"volumes[].nfs", Keep, "named by its address, mounted by the member's kubelet"},
	{"volumes[].iscsi", Translate, "named by its address, mounted by the member's kubelet; names the Secret's copy"},
	{"volumes[].fc", Keep, "named by its address, mounted by the member's kubelet"},
	{"volumes[].csi", Refuse, inlineCSI},
	{"volumes[].flexVolume", Refuse, "FlexVolume is deprecated and its driver a program on the host's nodes; use a PersistentVolumeClaim"},
	{"volumes[].gitRepo", Refuse, "gitRepo is off in Kubernetes, since it runs code as root; clone in an init container"},
	{"volumes[].gcePersistentDisk", Refuse, viaCSI},
	{"volumes[].awsElasticBlockStore", Refuse, viaCSI},
	{"volumes[].azureDisk", Refuse, viaCSI},
	{"volumes[].azureFile", Refuse, viaCSI},
	{"volumes[].cinder", Refuse, viaCSI},
	{"volumes[].vsphereVolume", Refuse, viaCSI},
	{"volumes[].portworxVolume", Refuse, viaCSI},
	{"volumes[].glusterfs", Refuse, noPlugin},
	{"volumes[].cephfs", Refuse, noPlugin},
	{"volumes[].rbd", Refuse, noPlugin},
	{"volumes[].flocker", Refuse, noPlugin},
	{"volumes[].quobyte", Refuse, noPlugin},
	{"volumes[].photonPersistentDisk", Refuse, noPlugin},
	{"volumes[].scaleIO", Refuse, noPlugin},
	{"volumes[].storageos", Refuse, noPlugin},
}
