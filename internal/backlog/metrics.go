package backlog

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var heldBackClaims = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "xylem_claims_held_back",
	Help: "Claims for a member that wait because the host's PV controller has many volumes to bind.",
}, []string{"cluster"})

func init() { metrics.Registry.MustRegister(heldBackClaims) }
