package podspec

import "github.com/xylem-io/xylem/internal/mirror/fields"

// What several kinds of volumes are refused for.
const (
	inlineCSI = "inline volumes of a CSI driver are made outside of any claim, where nothing of them can be shown or counted; use a PersistentVolumeClaim"
	viaCSI    = "served by a CSI driver since its plugin left Kubernetes, so refused as an inline CSI volume; use a PersistentVolumeClaim"
	noPlugin  = "its plugin has been removed from Kubernetes; use a PersistentVolumeClaim"
)

// podVolumeFields decide on every kind of volume.
var podVolumeFields = []fields.Field{
	{Path: "volumes[].name", Decision: fields.Keep, Why: "mounts name it"},
	{Path: "volumes[].persistentVolumeClaim", Decision: fields.Keep, Why: "the leaf claim has the root claim's name"},
	{Path: "volumes[].ephemeral", Decision: fields.Translate, Why: "becomes a plain claim `<pod>-<volume>`, which the host's controller makes and Xylem pushes; the member would want the claim to be owned by its own Pod"},
	{Path: "volumes[].configMap", Decision: fields.Translate, Why: "names the ConfigMap's copy, `<name>.xylem-<digest>`, which no object of the member's own can be mistaken for; items stay the same. `kube-root-ca.crt` is the member's, as every namespace has its own"},
	{Path: "volumes[].secret", Decision: fields.Translate, Why: "names the Secret's copy, as configMap"},
	{Path: "volumes[].downwardAPI", Decision: fields.Keep, Why: "tells the leaf's fields"},
	{Path: "volumes[].projected.defaultMode", Decision: fields.Keep, Why: "file modes"},
	{Path: "volumes[].projected.defaultUser", Decision: fields.Keep, Why: "whose the files are; numbers mean the same everywhere"},
	{Path: "volumes[].projected.sources[].configMap", Decision: fields.Translate, Why: "names the ConfigMap's copy, as configMap"},
	{Path: "volumes[].projected.sources[].secret", Decision: fields.Translate, Why: "names the Secret's copy, as configMap"},
	{Path: "volumes[].projected.sources[].downwardAPI", Decision: fields.Keep, Why: "tells the leaf's fields"},
	{Path: "volumes[].projected.sources[].serviceAccountToken", Decision: fields.Refuse, Why: "a token would be the member's, for a stranger; API clients in Pods are a later capability, so remove the volume (the one that admission puts into every Pod is left out without asking)"},
	{Path: "volumes[].projected.sources[].clusterTrustBundle", Decision: fields.Refuse, Why: "trust bundles are cluster-wide objects of the host; put the certificates into a ConfigMap"},
	{Path: "volumes[].projected.sources[].podCertificate", Decision: fields.Refuse, Why: "the certificate would be issued by the member, for a stranger; put a certificate into a Secret"},
	{Path: "volumes[].emptyDir", Decision: fields.Keep, Why: "made on the member's real node"},
	{Path: "volumes[].hostPath", Decision: fields.Keep, Why: "a path on the member's real node; judged by the member's Pod Security admission"},
	{Path: "volumes[].image", Decision: fields.Keep, Why: "pulled by the member"},
	{Path: "volumes[].nfs", Decision: fields.Keep, Why: "named by its address, mounted by the member's kubelet"},
	{Path: "volumes[].iscsi", Decision: fields.Translate, Why: "named by its address, mounted by the member's kubelet; names the Secret's copy"},
	{Path: "volumes[].fc", Decision: fields.Keep, Why: "named by its address, mounted by the member's kubelet"},
	{Path: "volumes[].csi", Decision: fields.Refuse, Why: inlineCSI},
	{Path: "volumes[].flexVolume", Decision: fields.Refuse, Why: "FlexVolume is deprecated and its driver a program on the host's nodes; use a PersistentVolumeClaim"},
	{Path: "volumes[].gitRepo", Decision: fields.Refuse, Why: "gitRepo is off in Kubernetes, since it runs code as root; clone in an init container"},
	{Path: "volumes[].gcePersistentDisk", Decision: fields.Refuse, Why: viaCSI},
	{Path: "volumes[].awsElasticBlockStore", Decision: fields.Refuse, Why: viaCSI},
	{Path: "volumes[].azureDisk", Decision: fields.Refuse, Why: viaCSI},
	{Path: "volumes[].azureFile", Decision: fields.Refuse, Why: viaCSI},
	{Path: "volumes[].cinder", Decision: fields.Refuse, Why: viaCSI},
	{Path: "volumes[].vsphereVolume", Decision: fields.Refuse, Why: viaCSI},
	{Path: "volumes[].portworxVolume", Decision: fields.Refuse, Why: viaCSI},
	{Path: "volumes[].glusterfs", Decision: fields.Refuse, Why: noPlugin},
	{Path: "volumes[].cephfs", Decision: fields.Refuse, Why: noPlugin},
	{Path: "volumes[].rbd", Decision: fields.Refuse, Why: noPlugin},
	{Path: "volumes[].flocker", Decision: fields.Refuse, Why: noPlugin},
	{Path: "volumes[].quobyte", Decision: fields.Refuse, Why: noPlugin},
	{Path: "volumes[].photonPersistentDisk", Decision: fields.Refuse, Why: noPlugin},
	{Path: "volumes[].scaleIO", Decision: fields.Refuse, Why: noPlugin},
	{Path: "volumes[].storageos", Decision: fields.Refuse, Why: noPlugin},
}
