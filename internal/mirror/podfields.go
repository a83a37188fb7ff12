package mirror

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// podTable decides on every field of a Pod's spec.
var podTable = Table{
	Title:  "Pod spec (host to member)",
	root:   "spec",
	holder: reflect.TypeFor[corev1.PodSpec](),
	Fields: slices.Concat(
		podRunFields, podPlaceFields, podIdentityFields, podSecurityFields,
		podVolumeFields, containerFields("initContainers[]."), containerFields("containers[]."),
	),
}

var podShape = podTable.compile()

// podRunFields say how a Pod runs: the same in every cluster.
var podRunFields = []Field{
	{"ephemeralContainers", Drop, "the API does not take them at creation; `kubectl debug` of a pushed Pod is a later capability"},
	{"restartPolicy", Keep, "the member's kubelet restarts containers"},
	{"terminationGracePeriodSeconds", Keep, "the member's kubelet stops containers"},
	{"activeDeadlineSeconds", Keep, "the member's kubelet keeps the deadline; changes are carried over"},
	{"dnsPolicy", Keep, "ClusterFirst means the member's DNS, where Services of the host have no names"},
	{"dnsConfig", Keep, "plain addresses and names"},
	{"hostname", Keep, "the leaf has its root's name, so host names stay what they were"},
	{"subdomain", Keep, "as hostname; the headless Service behind it lives in the host"},
	{"setHostnameAsFQDN", Keep, "as hostname"},
	{"hostnameOverride", Keep, "as hostname"},
	{"hostAliases", Keep, "plain addresses and names"},
	{"enableServiceLinks", Keep, "says whether the member's Services appear as environment"},
	{"shareProcessNamespace", Keep, "between the Pod's own containers"},
	{"imagePullSecrets", Translate, "name the copies of the Secrets. A Pod without any gets those of the member's `default` service account: its admin grants them to the namespace's Pods, and no container sees them"},
	{"os", Keep, "the member's admission and kubelets look at it"},
	{"resources.limits", Keep, "amounts mean the same everywhere"},
	{"resources.requests", Keep, "amounts mean the same everywhere"},
	{"resources.claims", Refuse, "dynamic resources are allocated in the host, for devices of its nodes; ask for extended resources instead"},
	{"resourceClaims", Refuse, "dynamic resources are allocated in the host, for devices of its nodes; ask for extended resources instead"},
	{"readinessGates", Drop, "controllers of the host set these conditions, on the root Pod only: the leaf would never be ready. The root's Ready waits for them"},
}

// podPlaceFields say where a Pod runs. The host's scheduler has answered them
// by choosing the member; only what a member's own nodes can answer is left.
var podPlaceFields = []Field{
	{"nodeName", Drop, "names the virtual node; the member's scheduler chooses a real one"},
	{"schedulerName", Drop, "names a scheduler of the host; the member's default one is used"},
	{"schedulingGates", Drop, "a Pod that is pushed has none left; their controllers live in the host"},
	{"schedulingGroup", Drop, "names a PodGroup of the host, whose scheduler has let the group go ahead"},
	{"evictionResponders", Drop, "name responders in the host; an eviction in the member would wait for answers that nobody there gives"},
	{"nodeSelector", Translate, "speaks of virtual nodes, and chose one. Only operating system and architecture, which every kubelet labels, still choose within the member"},
	{"affinity.nodeAffinity", Translate, "as nodeSelector: expressions on operating system and architecture stay, terms that speak of another member go, and a required term of which nothing is left asks for nothing"},
	{"affinity.podAffinity", Translate, "kept within the member by host name; required terms on other topologies, or on labels of namespaces, become preferred ones, since the member's nodes and namespaces need not have those labels; terms on `xylem.io/*` topologies are settled by the choice of the member"},
	{"affinity.podAntiAffinity", Translate, "kept within the member on every topology but `xylem.io/*`, which the choice of the member settles"},
	{"tolerations", Translate, "kept, except those of virtual nodes' taints (`kosmos.io/node`, `xylem.io/*`) and the five minutes that the host's admission puts on every Pod, for which the member has its own default"},
	{"topologySpreadConstraints[].maxSkew", Keep, "counted anew among the member's nodes"},
	{"topologySpreadConstraints[].topologyKey", Keep, "counted anew among the member's nodes; constraints on `xylem.io/*` topologies are settled by the choice of the member and go"},
	{"topologySpreadConstraints[].whenUnsatisfiable", Translate, "stays by host name; on other topologies the member's nodes need not have the label, so it becomes ScheduleAnyway (of two constraints that become alike, the first stays)"},
	{"topologySpreadConstraints[].labelSelector", Translate, "takes up matchLabelKeys"},
	{"topologySpreadConstraints[].minDomains", Drop, "counts the host's domains, of which one member may have too few for ever"},
	{"topologySpreadConstraints[].nodeAffinityPolicy", Keep, "about the member's nodes"},
	{"topologySpreadConstraints[].nodeTaintsPolicy", Keep, "about the member's nodes"},
	{"topologySpreadConstraints[].matchLabelKeys", Translate, "taken up by the label selector, as the API server does: naming a key in both is refused at creation"},
	{"priorityClassName", Drop, "priority classes are cluster-wide and mean what an admin says; the member's default applies"},
	{"priority", Drop, "computed by admission from the priority class"},
	{"preemptionPolicy", Drop, "computed by admission from the priority class"},
	{"runtimeClassName", Keep, "often a matter of isolation, so it is not weakened silently: a member without this RuntimeClass refuses the Pod, and an event says so"},
	{"overhead", Drop, "computed by the member's admission from its own RuntimeClass, which refuses another value"},
}

// podIdentityFields say who a Pod is to the API server. That is a later
// capability: a leaf Pod is nobody, in either cluster.
var podIdentityFields = []Field{
	{"serviceAccountName", Drop, "service accounts are identities of the host; the leaf runs as its namespace's `default`, without a token. Clients of the host's API in Pods are a later capability"},
	{"serviceAccount", Drop, "the deprecated name of serviceAccountName"},
	{"automountServiceAccountToken", Translate, "always false: a token of the member would be a stranger's"},
}

// podSecurityFields: the member's Pod Security admission judges them, by the
// labels that its namespace has from the host's.
var podSecurityFields = []Field{
	{"hostNetwork", Keep, "judged by the member's Pod Security admission"},
	{"hostPID", Keep, "judged by the member's Pod Security admission"},
	{"hostIPC", Keep, "judged by the member's Pod Security admission"},
	{"hostUsers", Keep, "judged by the member's Pod Security admission"},
	{"securityContext.seLinuxOptions", Keep, "judged by the member's Pod Security admission"},
	{"securityContext.windowsOptions", Keep, "judged by the member's Pod Security admission"},
	{"securityContext.runAsUser", Keep, "numbers mean the same everywhere"},
	{"securityContext.runAsGroup", Keep, "numbers mean the same everywhere"},
	{"securityContext.runAsNonRoot", Keep, "never weakened"},
	{"securityContext.supplementalGroups", Keep, "numbers mean the same everywhere"},
	{"securityContext.supplementalGroupsPolicy", Keep, "never weakened"},
	{"securityContext.fsGroup", Keep, "the volume's files belong to it in the member"},
	{"securityContext.sysctls", Keep, "judged by the member's Pod Security admission and kubelet"},
	{"securityContext.fsGroupChangePolicy", Keep, "how the member's kubelet changes owners on a volume"},
	{"securityContext.seccompProfile", Keep, "never weakened; a Localhost profile has to be on the member's nodes"},
	{"securityContext.appArmorProfile", Keep, "never weakened; a Localhost profile has to be on the member's nodes"},
	{"securityContext.seLinuxChangePolicy", Keep, "how the member's kubelet labels a volume"},
}

// containerFields are the fields of a container; init containers have the same.
func containerFields(prefix string) []Field {
	fields := slices.Clone(oneContainerFields)
	for i := range fields {
		fields[i].Path = prefix + fields[i].Path
	}
	return fields
}

var oneContainerFields = []Field{
	{"name", Keep, "statuses are carried back by it"},
	{"image", Keep, "pulled by the member; changes are carried over"},
	{"command", Keep, "what runs"},
	{"args", Keep, "what runs"},
	{"workingDir", Keep, "what runs"},
	{"ports", Keep, "a host port is one of the member's real node; its scheduler sees to collisions"},
	{"envFrom", Translate, "names the copies of the ConfigMaps and Secrets; the variables stay the same"},
	{"env", Translate, "names the copies of the ConfigMaps and Secrets; field references tell the leaf's fields, so spec.nodeName is the member's real node"},
	{"resources.limits", Keep, "amounts mean the same everywhere; extended resources have to exist in the member"},
	{"resources.requests", Keep, "amounts mean the same everywhere; extended resources have to exist in the member"},
	{"resources.claims", Refuse, "dynamic resources are allocated in the host, for devices of its nodes; ask for extended resources instead"},
	{"resizePolicy", Keep, "how the member's kubelet resizes"},
	{"restartPolicy", Keep, "how the member's kubelet restarts"},
	{"restartPolicyRules", Keep, "how the member's kubelet restarts"},
	{"volumeMounts", Translate, "kept, except those of the service account token that admission puts into every Pod"},
	{"volumeDevices", Keep, "block volumes stay block volumes"},
	{"livenessProbe", Keep, "the member's kubelet probes"},
	{"readinessProbe", Keep, "the member's kubelet probes"},
	{"startupProbe", Keep, "the member's kubelet probes"},
	{"lifecycle", Keep, "the member's kubelet runs the hooks"},
	{"terminationMessagePath", Keep, "the message comes up with the status"},
	{"terminationMessagePolicy", Keep, "the message comes up with the status"},
	{"imagePullPolicy", Keep, "the member's kubelet pulls"},
	{"securityContext.capabilities", Keep, "judged by the member's Pod Security admission"},
	{"securityContext.privileged", Keep, "judged by the member's Pod Security admission"},
	{"securityContext.seLinuxOptions", Keep, "judged by the member's Pod Security admission"},
	{"securityContext.windowsOptions", Keep, "judged by the member's Pod Security admission"},
	{"securityContext.runAsUser", Keep, "numbers mean the same everywhere"},
	{"securityContext.runAsGroup", Keep, "numbers mean the same everywhere"},
	{"securityContext.runAsNonRoot", Keep, "never weakened"},
	{"securityContext.readOnlyRootFilesystem", Keep, "never weakened"},
	{"securityContext.allowPrivilegeEscalation", Keep, "never weakened"},
	{"securityContext.procMount", Keep, "judged by the member's Pod Security admission"},
	{"securityContext.seccompProfile", Keep, "never weakened; a Localhost profile has to be on the member's nodes"},
	{"securityContext.appArmorProfile", Keep, "never weakened; a Localhost profile has to be on the member's nodes"},
	{"stdin", Keep, "what runs"},
	{"stdinOnce", Keep, "what runs"},
	{"tty", Keep, "what runs"},
}
