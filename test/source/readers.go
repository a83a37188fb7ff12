package source

// side is the cache that a reader reads from.
type side string

const (
	hostSide      side = "host"
	leafSide      side = "leaf"
	workloadsSide side = "workloads" // the member's Pods that do not belong to this host
	liveSide      side = "live"      // live reads from either cluster
)

// readerFields maps each struct field that contains a reader to the reader's cache. A field is identified
// by package, type and name. A field that is not in the map is reported as unknown.
var readerFields = map[string]side{
	"member.Link.Host":        hostSide,
	"member.Link.HostLive":    liveSide,
	"member.Link.HostSecrets": liveSide,
	"member.Link.Cache":       leafSide,
	"member.Link.Workloads":   workloadsSide,
	"member.Link.Live":        liveSide,

	"proof.Prover.Host":      hostSide,
	"proof.Prover.HostLive":  liveSide,
	"proof.Prover.Cache":     leafSide,
	"proof.Prover.Live":      liveSide,
	"proof.OtherMember.Live": liveSide,

	"observe.Observer.LeafSnapshots": leafSide,

	"fencing.RevisionMonitor.Live": liveSide,
	"fencing.HostRecords.Live":     liveSide,
	"member.Connection.Live":       liveSide,
	"fencing.Fence.host":           liveSide,
	"fencing.Fence.member":         liveSide,

	"deregistration.Deregisterer.Client":     hostSide,
	"clusterregistration.Reconciler.Client":  hostSide,
	"clusterregistration.Reconciler.Live":    liveSide,
	"awaymember.PodReconciler.Client":        hostSide,
	"awaymember.AttachmentReconciler.Client": hostSide,
	"waitingpod.Reconciler.Client":           hostSide,
	"virtualnode.DriverReconciler.Client":    hostSide,
	"virtualnode.Heartbeat.Cache":            hostSide,
	"virtualnode.Heartbeat.Live":             liveSide,
	"hostclaim.Reconciler.Client":            hostSide,
	"hostclaim.Reconciler.Live":              liveSide,
	"account.MirrorTracker.host":             hostSide,
	"account.MirrorTracker.live":             liveSide,
	"hostsnapshot.Reconciler.Client":         hostSide,
	"hostsnapshot.Reconciler.Live":           liveSide,
	"hostvolume.Reconciler.Client":           hostSide,
	"hostvolume.Reconciler.Live":             liveSide,
	"promise.Reconciler.Client":              hostSide,
	"source.Reconciler.Client":               hostSide,
	"reflectedclass.Reconciler.Client":       hostSide,
	"virtualnode.Reconciler.Client":          hostSide,
	"virtualnode.Reconciler.Live":            liveSide,
}
