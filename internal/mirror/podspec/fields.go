package podspec

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// Table decides on every field of a Pod's spec.
var Table = fields.Table{
	Title:  "Pod spec (host to member)",
	Root:   "spec",
	Holder: reflect.TypeFor[corev1.PodSpec](),
	Fields: slices.Concat(
		podRunFields, podPlaceFields, podIdentityFields, podSecurityFields,
		podVolumeFields, containerFields("initContainers[]."), containerFields("containers[]."),
	),
}

var podShape = Table.Compile()

// podRunFields say how a Pod runs: the same in every cluster.
var podRunFields = []fields.Field{
	{Path: "ephemeralContainers", Decision: fields.Drop, Why: "the API does not take them at creation; `kubectl debug` of a pushed Pod is a later capability"},
	{Path: "restartPolicy", Decision: fields.Keep, Why: "the member's kubelet restarts containers"},
	{Path: "terminationGracePeriodSeconds", Decision: fields.Keep, Why: "the member's kubelet stops containers"},
	{Path: "activeDeadlineSeconds", Decision: fields.Keep, Why: "the member's kubelet keeps the deadline; changes are carried over"},
	{Path: "dnsPolicy", Decision: fields.Keep, Why: "ClusterFirst means the member's DNS, where Services of the host have no names"},
	{Path: "dnsConfig", Decision: fields.Keep, Why: "plain addresses and names"},
	{Path: "hostname", Decision: fields.Keep, Why: "the leaf has its root's name, so host names stay what they were"},
	{Path: "subdomain", Decision: fields.Keep, Why: "as hostname; the headless Service behind it lives in the host"},
	{Path: "setHostnameAsFQDN", Decision: fields.Keep, Why: "as hostname"},
	{Path: "hostnameOverride", Decision: fields.Keep, Why: "as hostname"},
	{Path: "hostAliases", Decision: fields.Keep, Why: "plain addresses and names"},
	{Path: "enableServiceLinks", Decision: fields.Keep, Why: "decides whether the member's Services appear as environment variables"},
	{Path: "shareProcessNamespace", Decision: fields.Keep, Why: "between the Pod's own containers"},
	{Path: "imagePullSecrets", Decision: fields.Translate, Why: "name the copies of the Secrets. A Pod without any gets those of the member's `default` service account: its admin grants them to the namespace's Pods, and no container sees them"},
	{Path: "os", Decision: fields.Keep, Why: "the member's admission and kubelets read it"},
	{Path: "resources.limits", Decision: fields.Keep, Why: "amounts mean the same everywhere"},
	{Path: "resources.requests", Decision: fields.Keep, Why: "amounts mean the same everywhere"},
	{Path: "resources.claims", Decision: fields.Refuse, Why: "dynamic resources are allocated in the host, for devices of its nodes; ask for extended resources instead"},
	{Path: "resourceClaims", Decision: fields.Refuse, Why: "dynamic resources are allocated in the host, for devices of its nodes; ask for extended resources instead"},
	{Path: "readinessGates", Decision: fields.Drop, Why: "controllers of the host set these conditions, on the root Pod only: the leaf would never be ready. The root's Ready waits for them"},
}

// podPlaceFields say where a Pod runs. The host's scheduler has answered them
// by choosing the member; only what a member's own nodes can answer is left.
var podPlaceFields = []fields.Field{
	{Path: "nodeName", Decision: fields.Drop, Why: "names the virtual node; the member's scheduler chooses a real one"},
	{Path: "schedulerName", Decision: fields.Drop, Why: "names a scheduler of the host; the member's default one is used"},
	{Path: "schedulingGates", Decision: fields.Drop, Why: "a Pod that is pushed has none left; their controllers live in the host"},
	{Path: "schedulingGroup", Decision: fields.Drop, Why: "names a PodGroup of the host, whose scheduler has let the group go ahead"},
	{Path: "evictionResponders", Decision: fields.Drop, Why: "name responders in the host; an eviction in the member would wait for answers that nobody there gives"},
	{Path: "nodeSelector", Decision: fields.Translate, Why: "refers to virtual nodes, one of which was chosen. Only operating system and architecture, which every kubelet labels, still select nodes within the member"},
	{Path: "affinity.nodeAffinity", Decision: fields.Translate, Why: "as nodeSelector: expressions on operating system and architecture stay, terms that speak of another member go, and a required term of which nothing is left asks for nothing"},
	{Path: "affinity.podAffinity", Decision: fields.Translate, Why: "kept within the member by host name; required terms on other topologies, or on labels of namespaces, become preferred ones, since the member's nodes and namespaces need not have those labels; terms on `xylem.io/*` topologies are settled by the choice of the member"},
	{Path: "affinity.podAntiAffinity", Decision: fields.Translate, Why: "kept within the member on every topology but `xylem.io/*`, which the choice of the member settles"},
	{Path: "tolerations", Decision: fields.Translate, Why: "kept, except those of virtual nodes' taints (`kosmos.io/node`, `xylem.io/*`) and the five minutes that the host's admission puts on every Pod, for which the member has its own default"},
	{Path: "topologySpreadConstraints[].maxSkew", Decision: fields.Keep, Why: "counted again among the member's nodes"},
	{Path: "topologySpreadConstraints[].topologyKey", Decision: fields.Keep, Why: "counted again among the member's nodes; constraints on `xylem.io/*` topologies are settled by the choice of the member, and dropped"},
	{Path: "topologySpreadConstraints[].whenUnsatisfiable", Decision: fields.Translate, Why: "stays by host name; on other topologies the member's nodes need not have the label, so it becomes ScheduleAnyway (of two constraints that become alike, the first stays)"},
	{Path: "topologySpreadConstraints[].labelSelector", Decision: fields.Translate, Why: "takes up matchLabelKeys"},
	{Path: "topologySpreadConstraints[].minDomains", Decision: fields.Drop, Why: "counts the host's domains, of which one member may have too few for ever"},
	{Path: "topologySpreadConstraints[].nodeAffinityPolicy", Decision: fields.Keep, Why: "about the member's nodes"},
	{Path: "topologySpreadConstraints[].nodeTaintsPolicy", Decision: fields.Keep, Why: "about the member's nodes"},
	{Path: "topologySpreadConstraints[].matchLabelKeys", Decision: fields.Translate, Why: "taken up by the label selector, as the API server does: naming a key in both is refused at creation"},
	{Path: "priorityClassName", Decision: fields.Drop, Why: "priority classes are cluster-wide and mean what an admin says; the member's default applies"},
	{Path: "priority", Decision: fields.Drop, Why: "computed by admission from the priority class"},
	{Path: "preemptionPolicy", Decision: fields.Drop, Why: "computed by admission from the priority class"},
	{Path: "runtimeClassName", Decision: fields.Keep, Why: "often a matter of isolation, so it is not weakened silently: a member without this RuntimeClass refuses the Pod, and an event says so"},
	{Path: "overhead", Decision: fields.Drop, Why: "computed by the member's admission from its own RuntimeClass, which refuses another value"},
}

// podIdentityFields say who a Pod is to the API server. That is a later
// capability: a leaf Pod is nobody, in either cluster.
var podIdentityFields = []fields.Field{
	{Path: "serviceAccountName", Decision: fields.Drop, Why: "service accounts are identities of the host; the leaf runs as its namespace's `default`, without a token. Clients of the host's API in Pods are a later capability"},
	{Path: "serviceAccount", Decision: fields.Drop, Why: "the deprecated name of serviceAccountName"},
	{Path: "automountServiceAccountToken", Decision: fields.Translate, Why: "always false: a token of the member would be a stranger's"},
}

// podSecurityFields: the member's Pod Security admission judges them, by the
// labels that its namespace has from the host's.
var podSecurityFields = []fields.Field{
	{Path: "hostNetwork", Decision: fields.Keep, Why: "judged by the member's Pod Security admission"},
	{Path: "hostPID", Decision: fields.Keep, Why: "judged by the member's Pod Security admission"},
	{Path: "hostIPC", Decision: fields.Keep, Why: "judged by the member's Pod Security admission"},
	{Path: "hostUsers", Decision: fields.Keep, Why: "judged by the member's Pod Security admission"},
	{Path: "securityContext.seLinuxOptions", Decision: fields.Keep, Why: "judged by the member's Pod Security admission"},
	{Path: "securityContext.windowsOptions", Decision: fields.Keep, Why: "judged by the member's Pod Security admission"},
	{Path: "securityContext.runAsUser", Decision: fields.Keep, Why: "numbers mean the same everywhere"},
	{Path: "securityContext.runAsGroup", Decision: fields.Keep, Why: "numbers mean the same everywhere"},
	{Path: "securityContext.runAsNonRoot", Decision: fields.Keep, Why: "never weakened"},
	{Path: "securityContext.supplementalGroups", Decision: fields.Keep, Why: "numbers mean the same everywhere"},
	{Path: "securityContext.supplementalGroupsPolicy", Decision: fields.Keep, Why: "never weakened"},
	{Path: "securityContext.fsGroup", Decision: fields.Keep, Why: "the volume's files belong to it in the member"},
	{Path: "securityContext.sysctls", Decision: fields.Keep, Why: "judged by the member's Pod Security admission and kubelet"},
	{Path: "securityContext.fsGroupChangePolicy", Decision: fields.Keep, Why: "how the member's kubelet changes owners on a volume"},
	{Path: "securityContext.seccompProfile", Decision: fields.Keep, Why: "never weakened; a Localhost profile has to be on the member's nodes"},
	{Path: "securityContext.appArmorProfile", Decision: fields.Keep, Why: "never weakened; a Localhost profile has to be on the member's nodes"},
	{Path: "securityContext.seLinuxChangePolicy", Decision: fields.Keep, Why: "how the member's kubelet labels a volume"},
}

// containerFields are the fields of a container; init containers have the same.
func containerFields(prefix string) []fields.Field {
	fields := slices.Clone(oneContainerFields)
	for i := range fields {
		fields[i].Path = prefix + fields[i].Path
	}
	return fields
}

var oneContainerFields = []fields.Field{
	{Path: "name", Decision: fields.Keep, Why: "statuses are carried back by it"},
	{Path: "image", Decision: fields.Keep, Why: "pulled by the member; changes are carried over"},
	{Path: "command", Decision: fields.Keep, Why: "what runs"},
	{Path: "args", Decision: fields.Keep, Why: "what runs"},
	{Path: "workingDir", Decision: fields.Keep, Why: "what runs"},
	{Path: "ports", Decision: fields.Keep, Why: "a host port is one of the member's real node; its scheduler sees to collisions"},
	{Path: "envFrom", Decision: fields.Translate, Why: "names the copies of the ConfigMaps and Secrets; the variables stay the same"},
	{Path: "env", Decision: fields.Translate, Why: "names the copies of the ConfigMaps and Secrets; field references tell the leaf's fields, so spec.nodeName is the member's real node"},
	{Path: "resources.limits", Decision: fields.Keep, Why: "amounts mean the same everywhere; extended resources have to exist in the member"},
	{Path: "resources.requests", Decision: fields.Keep, Why: "amounts mean the same everywhere; extended resources have to exist in the member"},
	{Path: "resources.claims", Decision: fields.Refuse, Why: "dynamic resources are allocated in the host, for devices of its nodes; ask for extended resources instead"},
	{Path: "resizePolicy", Decision: fields.Keep, Why: "how the member's kubelet resizes"},
	{Path: "restartPolicy", Decision: fields.Keep, Why: "how the member's kubelet restarts"},
	{Path: "restartPolicyRules", Decision: fields.Keep, Why: "how the member's kubelet restarts"},
	{Path: "volumeMounts", Decision: fields.Translate, Why: "kept, except those of the service account token that admission puts into every Pod"},
	{Path: "volumeDevices", Decision: fields.Keep, Why: "block volumes stay block volumes"},
	{Path: "livenessProbe", Decision: fields.Keep, Why: "the member's kubelet probes"},
	{Path: "readinessProbe", Decision: fields.Keep, Why: "the member's kubelet probes"},
	{Path: "startupProbe", Decision: fields.Keep, Why: "the member's kubelet probes"},
	{Path: "lifecycle", Decision: fields.Keep, Why: "the member's kubelet runs the hooks"},
	{Path: "terminationMessagePath", Decision: fields.Keep, Why: "the message comes up with the status"},
	{Path: "terminationMessagePolicy", Decision: fields.Keep, Why: "the message comes up with the status"},
	{Path: "imagePullPolicy", Decision: fields.Keep, Why: "the member's kubelet pulls"},
	{Path: "securityContext.capabilities", Decision: fields.Keep, Why: "judged by the member's Pod Security admission"},
	{Path: "securityContext.privileged", Decision: fields.Keep, Why: "judged by the member's Pod Security admission"},
	{Path: "securityContext.seLinuxOptions", Decision: fields.Keep, Why: "judged by the member's Pod Security admission"},
	{Path: "securityContext.windowsOptions", Decision: fields.Keep, Why: "judged by the member's Pod Security admission"},
	{Path: "securityContext.runAsUser", Decision: fields.Keep, Why: "numbers mean the same everywhere"},
	{Path: "securityContext.runAsGroup", Decision: fields.Keep, Why: "numbers mean the same everywhere"},
	{Path: "securityContext.runAsNonRoot", Decision: fields.Keep, Why: "never weakened"},
	{Path: "securityContext.readOnlyRootFilesystem", Decision: fields.Keep, Why: "never weakened"},
	{Path: "securityContext.allowPrivilegeEscalation", Decision: fields.Keep, Why: "never weakened"},
	{Path: "securityContext.procMount", Decision: fields.Keep, Why: "judged by the member's Pod Security admission"},
	{Path: "securityContext.seccompProfile", Decision: fields.Keep, Why: "never weakened; a Localhost profile has to be on the member's nodes"},
	{Path: "securityContext.appArmorProfile", Decision: fields.Keep, Why: "never weakened; a Localhost profile has to be on the member's nodes"},
	{Path: "stdin", Decision: fields.Keep, Why: "what runs"},
	{Path: "stdinOnce", Decision: fields.Keep, Why: "what runs"},
	{Path: "tty", Decision: fields.Keep, Why: "what runs"},
}
