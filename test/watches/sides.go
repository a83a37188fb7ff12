package watches

// side is the cache that a reader reads from.
type side string

const (
	host  side = "host"
	leaf  side = "leaf"
	other side = "workloads" // the member's Pods that do not belong to this host
	live  side = "live"      // live reads from either cluster
)

// readers maps each struct field that contains a reader to the reader's cache. A field is identified
// by package, type and name. A field that is not in the map is reported as unknown.
var readers = map[string]side{
	"member.Link.Host":      host,
	"member.Link.HostLive":  live,
	"member.Link.Cache":     leaf,
	"member.Link.Workloads": other,
	"member.Link.Live":      live,

	"proof.Prover.Host":     host,
	"proof.Prover.HostLive": live,
	"proof.Prover.Cache":    leaf,
	"proof.Prover.Live":     live,
	"placing.Other.Live":    live,

	"observe.Observer.LeafSnapshots": leaf,

	"hostrevision.Monitor.Live": live,
	"hostrecord.Records.Live":   live,
	"member.Connection.Live":    live,
	"fencing.Fence.host":        live,
	"fencing.Fence.member":      live,

	"deregistration.Leaver.Client":          host,
	"clusterregistration.Reconciler.Client": host,
	"clusterregistration.Reconciler.Live":   live,
	"awaypod.Reconciler.Client":             host,
	"leafattachment.Reconciler.Client":      host,
	"hostservice.Reconciler.Client":         host,
	"waitingpod.Reconciler.Client":          host,
	"csidriver.Reconciler.Client":           host,
	"csinode.Reconciler.Client":             host,
	"csinode.Reconciler.Live":               live,
	"heartbeat.Heartbeat.Cache":             host,
	"heartbeat.Heartbeat.Live":              live,
	"hostclaim.Reconciler.Client":           host,
	"hostclaim.Reconciler.Live":             live,
	"hostclass.Reconciler.Client":           host,
	"account.Mirrors.host":                  host,
	"account.Mirrors.live":                  live,
	"hostsnapshot.Reconciler.Client":        host,
	"hostsnapshot.Reconciler.Live":          live,
	"hostvolume.Reconciler.Client":          host,
	"hostvolume.Reconciler.Live":            live,
	"promise.Reconciler.Client":             host,
	"source.Reconciler.Client":              host,
	"reflectedclass.Reconciler.Client":      host,
	"virtualnode.Reconciler.Client":         host,
	"virtualnode.Reconciler.Live":           live,
}
