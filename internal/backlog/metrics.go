package backlog

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var heldBack = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "xylem_claims_held_back",
	Help: "Claims that could be placed in a member, and wait until the host's PV controller has bound more of the volumes that are there.",
}, []string{"cluster"})

func init() { metrics.Registry.MustRegister(heldBack) }
