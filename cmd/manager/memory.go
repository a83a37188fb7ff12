package main

import (
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// gcPercent is how much the heap grows between two garbage collections, where GOGC does
// not say: most of what a reconcile makes is garbage soon, and collecting it was a sixth
// of the manager's time with Go's default.
const gcPercent = 200

// tuneMemory lets garbage be collected more seldom, and as often as it takes close to
// the container's limit of memory: from 90 % of it on, unless GOMEMLIMIT says otherwise.
func tuneMemory(log logr.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if _, err := memlimit.Set(); err != nil {
		log.V(1).Info("the container's limit of memory is not known", "cause", err.Error())
	}
}
