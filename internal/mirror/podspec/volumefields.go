package podspec

import "github.com/xylem-io/xylem/internal/mirror/fields"

// Reasons that apply to several kinds of volumes.
const (
	inlineCSI     = "an inline CSI volume has no claim, so Xylem could neither show nor count it; use a PersistentVolumeClaim"
	replacedByCSI = "a CSI driver has replaced the in-tree plugin, so Xylem rejects this volume like an inline CSI volume; use a PersistentVolumeClaim"
	pluginRemoved = "Kubernetes has removed the plugin for this kind of volume; use a PersistentVolumeClaim"
)

// podVolumeFields lists the decisions on every kind of volume.
var podVolumeFields = []fields.Field{
	{Path: "volumes[].name", Decision: fields.Keep, Why: "mounts refer to the volume by its name"},
	{Path: "volumes[].persistentVolumeClaim", Decision: fields.Keep, Why: "the leaf claim has the root claim's name"},
	{Path: "volumes[].ephemeral", Decision: fields.Translate, Why: "becomes a plain claim `<pod>-<volume>`, which the host's controller creates and Xylem pushes; the member's controller would require the leaf Pod to own the claim"},
	{Path: "volumes[].configMap", Decision: fields.Translate, Why: "names the copy of the ConfigMap, `<name>.xylem-<digest>`, a name that none of the member's own objects has; items stay the same. `kube-root-ca.crt` is the member's own"},
	{Path: "volumes[].secret", Decision: fields.Translate, Why: "names the copy of the Secret, like configMap"},
	{Path: "volumes[].downwardAPI", Decision: fields.Keep, Why: "contains the leaf's fields"},
	{Path: "volumes[].projected.defaultMode", Decision: fields.Keep, Why: "file modes mean the same everywhere"},
	{Path: "volumes[].projected.defaultUser", Decision: fields.Keep, Why: "the files' owner; numeric IDs mean the same everywhere"},
	{Path: "volumes[].projected.sources[].configMap", Decision: fields.Translate, Why: "names the copy of the ConfigMap, like configMap"},
	{Path: "volumes[].projected.sources[].secret", Decision: fields.Translate, Why: "names the copy of the Secret, like configMap"},
	{Path: "volumes[].projected.sources[].downwardAPI", Decision: fields.Keep, Why: "contains the leaf's fields"},
	{Path: "volumes[].projected.sources[].serviceAccountToken", Decision: fields.Refuse, Why: "a member cannot issue tokens for the host's API server, and the member's registration has no apiServer; remove the volume (Xylem omits the one that admission adds to every Pod). If the registration has apiServer, the token becomes a key of a Secret with tokens that the host issues for the Pod, with the same audience and for at most an hour, and kube-root-ca.crt in the same volume becomes the host's CA"},
	{Path: "volumes[].projected.sources[].clusterTrustBundle", Decision: fields.Refuse, Why: "trust bundles are cluster-scoped objects in the host; put the certificates into a ConfigMap"},
	{Path: "volumes[].projected.sources[].podCertificate", Decision: fields.Refuse, Why: "a member cannot issue the host's certificates; put a certificate into a Secret"},
	{Path: "volumes[].emptyDir", Decision: fields.Keep, Why: "created on the member's node"},
	{Path: "volumes[].hostPath", Decision: fields.Keep, Why: "a path on the member's node; the member's Pod Security admission decides"},
	{Path: "volumes[].image", Decision: fields.Keep, Why: "the member's kubelet pulls the image"},
	{Path: "volumes[].nfs", Decision: fields.Keep, Why: "found by its address; the member's kubelet mounts it"},
	{Path: "volumes[].iscsi", Decision: fields.Translate, Why: "found by its address; the member's kubelet mounts it. Names the copy of the Secret"},
	{Path: "volumes[].fc", Decision: fields.Keep, Why: "found by its address; the member's kubelet mounts it"},
	{Path: "volumes[].csi", Decision: fields.Refuse, Why: inlineCSI},
	{Path: "volumes[].flexVolume", Decision: fields.Refuse, Why: "FlexVolume is deprecated, and its driver is a program on the host's nodes; use a PersistentVolumeClaim"},
	{Path: "volumes[].gitRepo", Decision: fields.Refuse, Why: "Kubernetes has disabled gitRepo, which runs code as root; clone the repository in an init container"},
	{Path: "volumes[].gcePersistentDisk", Decision: fields.Refuse, Why: replacedByCSI},
	{Path: "volumes[].awsElasticBlockStore", Decision: fields.Refuse, Why: replacedByCSI},
	{Path: "volumes[].azureDisk", Decision: fields.Refuse, Why: replacedByCSI},
	{Path: "volumes[].azureFile", Decision: fields.Refuse, Why: replacedByCSI},
	{Path: "volumes[].cinder", Decision: fields.Refuse, Why: replacedByCSI},
	{Path: "volumes[].vsphereVolume", Decision: fields.Refuse, Why: replacedByCSI},
	{Path: "volumes[].portworxVolume", Decision: fields.Refuse, Why: replacedByCSI},
	{Path: "volumes[].glusterfs", Decision: fields.Refuse, Why: pluginRemoved},
	{Path: "volumes[].cephfs", Decision: fields.Refuse, Why: pluginRemoved},
	{Path: "volumes[].rbd", Decision: fields.Refuse, Why: pluginRemoved},
	{Path: "volumes[].flocker", Decision: fields.Refuse, Why: pluginRemoved},
	{Path: "volumes[].quobyte", Decision: fields.Refuse, Why: pluginRemoved},
	{Path: "volumes[].photonPersistentDisk", Decision: fields.Refuse, Why: pluginRemoved},
	{Path: "volumes[].scaleIO", Decision: fields.Refuse, Why: pluginRemoved},
	{Path: "volumes[].storageos", Decision: fields.Refuse, Why: pluginRemoved},
}
