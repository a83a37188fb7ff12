package podspec

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// PodFieldTable decides on every field of a Pod's spec.
var PodFieldTable = fields.Table{
	Title:      "Pod spec (host to member)",
	PathPrefix: "spec",
	StructType: reflect.TypeFor[corev1.PodSpec](),
	Fields: slices.Concat(
		podRunFields, podPlaceFields, podIdentityFields, podSecurityFields,
		podVolumeFields, containerFields("initContainers[]."), containerFields("containers[]."), containerFields("ephemeralContainers[]."),
	),
}

var podDecisions = PodFieldTable.CompileDecisions()

// podRunFields lists the fields that define how a Pod runs. They mean the same in every cluster.
var podRunFields = []fields.Field{
	{Path: "ephemeralContainers[].targetContainerName", Decision: fields.Keep, Why: "the leaf has its root's containers. Xylem adds ephemeral containers to a running leaf, if the member's admin has granted the permission"},
	{Path: "restartPolicy", Decision: fields.Keep, Why: "the member's kubelet restarts containers"},
	{Path: "terminationGracePeriodSeconds", Decision: fields.Keep, Why: "the member's kubelet stops containers"},
	{Path: "activeDeadlineSeconds", Decision: fields.Keep, Why: "the member's kubelet enforces the deadline; changes are copied"},
	{Path: "dnsPolicy", Decision: fields.Keep, Why: "ClusterFirst means the member's DNS, which has the Services of the host's namespaces with Pods there"},
	{Path: "dnsConfig", Decision: fields.Keep, Why: "plain addresses and names"},
	{Path: "hostname", Decision: fields.Keep, Why: "the leaf has its root's name, so host names stay the same"},
	{Path: "subdomain", Decision: fields.Keep, Why: "like hostname; the headless Service exists in the member, too"},
	{Path: "setHostnameAsFQDN", Decision: fields.Keep, Why: "like hostname"},
	{Path: "hostnameOverride", Decision: fields.Keep, Why: "like hostname"},
	{Path: "hostAliases", Decision: fields.Keep, Why: "plain addresses and names"},
	{Path: "enableServiceLinks", Decision: fields.Keep, Why: "decides whether the member's Services appear as environment variables"},
	{Path: "shareProcessNamespace", Decision: fields.Keep, Why: "applies to the Pod's own containers"},
	{Path: "imagePullSecrets", Decision: fields.Translate, Why: "names the copies of the Secrets. A Pod without pull Secrets gets those of the member's `default` service account, which the member's admin grants to the namespace's Pods"},
	{Path: "os", Decision: fields.Keep, Why: "the member's admission and kubelets use it"},
	{Path: "resources.limits", Decision: fields.Keep, Why: "amounts mean the same everywhere; a resize of the root is pushed to the leaf"},
	{Path: "resources.requests", Decision: fields.Keep, Why: "amounts mean the same everywhere; a resize of the root is pushed to the leaf"},
	{Path: "resources.claims", Decision: fields.Refuse, Why: "the host allocates dynamic resources, for devices of its own nodes; request extended resources instead"},
	{Path: "resourceClaims", Decision: fields.Refuse, Why: "the host allocates dynamic resources, for devices of its own nodes; request extended resources instead"},
	{Path: "readinessGates", Decision: fields.Drop, Why: "the host's controllers set these conditions on the root Pod only, so the leaf would never be ready. The root's Ready condition waits for these conditions"},
}

// podPlaceFields lists the fields that define where a Pod runs. The host's scheduler evaluated them
// when it selected the member. The leaf keeps only constraints among the member's own nodes.
var podPlaceFields = []fields.Field{
	{Path: "nodeName", Decision: fields.Drop, Why: "names the virtual node; the member's scheduler chooses a real one"},
	{Path: "schedulerName", Decision: fields.Drop, Why: "names a scheduler in the host; the member's default one is used"},
	{Path: "schedulingGates", Decision: fields.Drop, Why: "a pushed Pod has no gates left; the controllers that remove them run in the host"},
	{Path: "schedulingGroup", Decision: fields.Drop, Why: "names a PodGroup in the host, whose scheduler has admitted the group"},
	{Path: "evictionResponders", Decision: fields.Drop, Why: "the responders run in the host, so an eviction in the member would wait for them forever"},
	{Path: "nodeSelector", Decision: fields.Translate, Why: "selects virtual nodes, and the host's scheduler has chosen one. Only the labels for operating system and architecture, which every kubelet sets, still select nodes within the member"},
	{Path: "affinity.nodeAffinity", Decision: fields.Translate, Why: "like nodeSelector: expressions on operating system and architecture are kept, terms that select another member are removed, and if a required term has no expressions left, the requirement is dropped"},
	{Path: "affinity.podAffinity", Decision: fields.Translate, Why: "kept for topology `kubernetes.io/hostname`. Required terms on other topologies, or on labels of namespaces, become preferred, since the member's nodes and namespaces may lack those labels. Terms on `xylem.io/*` topologies are dropped, because the choice of the member satisfies them"},
	{Path: "affinity.podAntiAffinity", Decision: fields.Translate, Why: "kept, except for `xylem.io/*` topologies, which the choice of the member satisfies"},
	{Path: "tolerations", Decision: fields.Translate, Why: "kept, except those for the taints of virtual nodes (`kosmos.io/node`, `xylem.io/*`) and the two five-minute tolerations that the host's admission adds to every Pod, because the member adds its own"},
	{Path: "topologySpreadConstraints[].maxSkew", Decision: fields.Keep, Why: "counted among the member's nodes"},
	{Path: "topologySpreadConstraints[].topologyKey", Decision: fields.Keep, Why: "counted among the member's nodes; constraints on `xylem.io/*` topologies are dropped, because the choice of the member satisfies them"},
	{Path: "topologySpreadConstraints[].whenUnsatisfiable", Decision: fields.Translate, Why: "kept for topology `kubernetes.io/hostname`; otherwise it becomes ScheduleAnyway, since the member's nodes may lack the label (if two constraints become equal, the first is kept)"},
	{Path: "topologySpreadConstraints[].labelSelector", Decision: fields.Translate, Why: "includes matchLabelKeys"},
	{Path: "topologySpreadConstraints[].minDomains", Decision: fields.Drop, Why: "counts the host's domains, and one member may never have enough"},
	{Path: "topologySpreadConstraints[].nodeAffinityPolicy", Decision: fields.Keep, Why: "applies to the member's nodes"},
	{Path: "topologySpreadConstraints[].nodeTaintsPolicy", Decision: fields.Keep, Why: "applies to the member's nodes"},
	{Path: "topologySpreadConstraints[].matchLabelKeys", Decision: fields.Translate, Why: "merged into the label selector, as in the API server, which rejects a key that is in both"},
	{Path: "priorityClassName", Decision: fields.Translate, Why: "the member's class in the registration's `spec.pods.priorityClasses`, which the member's admin must grant; without one, the field is dropped, and the member's default applies"},
	{Path: "priority", Decision: fields.Drop, Why: "the member's admission computes it from the leaf's priority class"},
	{Path: "preemptionPolicy", Decision: fields.Drop, Why: "the member's admission computes it from the leaf's priority class"},
	{Path: "runtimeClassName", Decision: fields.Keep, Why: "never weakened, since it may isolate the Pod: a member without this RuntimeClass rejects the Pod, and an event reports it"},
	{Path: "overhead", Decision: fields.Drop, Why: "the member's admission computes it from its own RuntimeClass, and rejects any other value"},
}

// podIdentityFields lists the fields that define the Pod's identity for the API server. A leaf Pod
// does not get an identity from the host.
var podIdentityFields = []fields.Field{
	{Path: "serviceAccountName", Decision: fields.Drop, Why: "service accounts are identities in the host; the leaf runs as its namespace's `default`, without a token of the member. If the registration has apiServer, the leaf has tokens of the root's account"},
	{Path: "serviceAccount", Decision: fields.Drop, Why: "the deprecated name of serviceAccountName"},
	{Path: "automountServiceAccountToken", Decision: fields.Translate, Why: "always false, because a token of the member is not an identity in the host"},
}

// podSecurityFields lists the fields that Pod Security admission in the member checks, according to
// the labels that Xylem copies from the host's namespace to the member's.
var podSecurityFields = []fields.Field{
	{Path: "hostNetwork", Decision: fields.Keep, Why: "the member's Pod Security admission decides"},
	{Path: "hostPID", Decision: fields.Keep, Why: "the member's Pod Security admission decides"},
	{Path: "hostIPC", Decision: fields.Keep, Why: "the member's Pod Security admission decides"},
	{Path: "hostUsers", Decision: fields.Keep, Why: "the member's Pod Security admission decides"},
	{Path: "securityContext.seLinuxOptions", Decision: fields.Keep, Why: "the member's Pod Security admission decides"},
	{Path: "securityContext.windowsOptions", Decision: fields.Keep, Why: "the member's Pod Security admission decides"},
	{Path: "securityContext.runAsUser", Decision: fields.Keep, Why: "numeric IDs mean the same everywhere"},
	{Path: "securityContext.runAsGroup", Decision: fields.Keep, Why: "numeric IDs mean the same everywhere"},
	{Path: "securityContext.runAsNonRoot", Decision: fields.Keep, Why: "never weakened"},
	{Path: "securityContext.supplementalGroups", Decision: fields.Keep, Why: "numeric IDs mean the same everywhere"},
	{Path: "securityContext.supplementalGroupsPolicy", Decision: fields.Keep, Why: "never weakened"},
	{Path: "securityContext.fsGroup", Decision: fields.Keep, Why: "the volume's files belong to this group in the member"},
	{Path: "securityContext.sysctls", Decision: fields.Keep, Why: "the member's Pod Security admission and kubelet decide"},
	{Path: "securityContext.fsGroupChangePolicy", Decision: fields.Keep, Why: "defines how the member's kubelet changes the ownership of a volume's files"},
	{Path: "securityContext.seccompProfile", Decision: fields.Keep, Why: "never weakened; a Localhost profile must exist on the member's nodes"},
	{Path: "securityContext.appArmorProfile", Decision: fields.Keep, Why: "never weakened; a Localhost profile must exist on the member's nodes"},
	{Path: "securityContext.seLinuxChangePolicy", Decision: fields.Keep, Why: "defines how the member's kubelet labels a volume"},
}

// containerFields returns the decisions on the fields of a container. They are the same for init
// and ephemeral containers.
func containerFields(prefix string) []fields.Field {
	fields := slices.Clone(oneContainerFields)
	for i := range fields {
		fields[i].Path = prefix + fields[i].Path
	}
	return fields
}

var oneContainerFields = []fields.Field{
	{Path: "name", Decision: fields.Keep, Why: "the status refers to the container by its name"},
	{Path: "image", Decision: fields.Keep, Why: "pulled by the member; changes are copied"},
	{Path: "command", Decision: fields.Keep, Why: "defines what the container runs"},
	{Path: "args", Decision: fields.Keep, Why: "defines what the container runs"},
	{Path: "workingDir", Decision: fields.Keep, Why: "defines what the container runs"},
	{Path: "ports", Decision: fields.Keep, Why: "host ports are opened on the member's node; the member's scheduler avoids collisions"},
	{Path: "envFrom", Decision: fields.Translate, Why: "names the copies of the ConfigMaps and Secrets; the variables stay the same"},
	{Path: "env", Decision: fields.Translate, Why: "names the copies of the ConfigMaps and Secrets; field references read the leaf, so spec.nodeName is the member's node. A container with a token for the host's API server gets `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT` of that server, unless it sets them itself"},
	{Path: "resources.limits", Decision: fields.Keep, Why: "amounts mean the same everywhere; the member needs the extended resources; a resize of the root is pushed to the leaf"},
	{Path: "resources.requests", Decision: fields.Keep, Why: "amounts mean the same everywhere; the member needs the extended resources; a resize of the root is pushed to the leaf"},
	{Path: "resources.claims", Decision: fields.Refuse, Why: "the host allocates dynamic resources, for devices of its own nodes; request extended resources instead"},
	{Path: "resizePolicy", Decision: fields.Keep, Why: "defines how the member's kubelet resizes the container"},
	{Path: "restartPolicy", Decision: fields.Keep, Why: "defines when the member's kubelet restarts the container"},
	{Path: "restartPolicyRules", Decision: fields.Keep, Why: "defines when the member's kubelet restarts the container"},
	{Path: "volumeMounts", Decision: fields.Translate, Why: "kept, except those of the service account token that admission adds to every Pod, unless the registration has apiServer"},
	{Path: "volumeDevices", Decision: fields.Keep, Why: "block volumes stay block volumes"},
	{Path: "livenessProbe", Decision: fields.Keep, Why: "the member's kubelet runs the probe"},
	{Path: "readinessProbe", Decision: fields.Keep, Why: "the member's kubelet runs the probe"},
	{Path: "startupProbe", Decision: fields.Keep, Why: "the member's kubelet runs the probe"},
	{Path: "lifecycle", Decision: fields.Keep, Why: "the member's kubelet runs the hooks"},
	{Path: "terminationMessagePath", Decision: fields.Keep, Why: "Xylem mirrors the message with the status"},
	{Path: "terminationMessagePolicy", Decision: fields.Keep, Why: "Xylem mirrors the message with the status"},
	{Path: "imagePullPolicy", Decision: fields.Keep, Why: "the member's kubelet pulls the image"},
	{Path: "securityContext.capabilities", Decision: fields.Keep, Why: "the member's Pod Security admission decides"},
	{Path: "securityContext.privileged", Decision: fields.Keep, Why: "the member's Pod Security admission decides"},
	{Path: "securityContext.seLinuxOptions", Decision: fields.Keep, Why: "the member's Pod Security admission decides"},
	{Path: "securityContext.windowsOptions", Decision: fields.Keep, Why: "the member's Pod Security admission decides"},
	{Path: "securityContext.runAsUser", Decision: fields.Keep, Why: "numeric IDs mean the same everywhere"},
	{Path: "securityContext.runAsGroup", Decision: fields.Keep, Why: "numeric IDs mean the same everywhere"},
	{Path: "securityContext.runAsNonRoot", Decision: fields.Keep, Why: "never weakened"},
	{Path: "securityContext.readOnlyRootFilesystem", Decision: fields.Keep, Why: "never weakened"},
	{Path: "securityContext.allowPrivilegeEscalation", Decision: fields.Keep, Why: "never weakened"},
	{Path: "securityContext.procMount", Decision: fields.Keep, Why: "the member's Pod Security admission decides"},
	{Path: "securityContext.seccompProfile", Decision: fields.Keep, Why: "never weakened; a Localhost profile must exist on the member's nodes"},
	{Path: "securityContext.appArmorProfile", Decision: fields.Keep, Why: "never weakened; a Localhost profile must exist on the member's nodes"},
	{Path: "stdin", Decision: fields.Keep, Why: "defines how the container runs"},
	{Path: "stdinOnce", Decision: fields.Keep, Why: "defines how the container runs"},
	{Path: "tty", Decision: fields.Keep, Why: "defines how the container runs"},
}
