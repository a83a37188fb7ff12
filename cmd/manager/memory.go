package main

import (
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// gcPercent is the heap growth between two garbage collections, unless GOGC is set. Most
// objects that a reconcile allocates are short-lived. With Go's default, collecting them took a
// sixth of the manager's CPU time.
const gcPercent = 200

// tuneGarbageCollector makes garbage collections less frequent. Above 90% of the container's memory limit,
// they run as often as necessary, unless GOMEMLIMIT is set.
func tuneGarbageCollector(log logr.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if _, err := memlimit.Set(); err != nil {
		log.V(1).Info("cannot read the container's memory limit", "cause", err.Error())
	}
}
