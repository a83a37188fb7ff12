// Command manager runs Xylem's controllers against the host cluster. As `manager check`, it checks
// whether an installation works, or can be removed.
package main

import (
	"flag"
	"fmt"
	"os"

	"go.uber.org/zap/zapcore"
	_ "golang.org/x/crypto/x509roots/fallback" // for images without root certificates
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/xylem-io/xylem/internal/manager"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "check" {
		if err := runCheckCommand(ctrl.SetupSignalHandler(), os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "manager check:", err)
			os.Exit(1)
		}
		return
	}
	var chosen manager.Options
	// Errors name the operation and the object, so a stack trace adds nothing.
	logging := zap.Options{StacktraceLevel: zapcore.PanicLevel}
	chosen.AddFlags(flag.CommandLine)
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	logging.Level = limitVerbosity(logging.Level)
	ctrl.SetLogger(newLazyLogger(zap.New(zap.UseFlagOptions(&logging))))
	tuneGarbageCollector(ctrl.Log)

	config, err := ctrl.GetConfig()
	if err != nil {
		ctrl.Log.Error(err, "could not find the host's kubeconfig")
		os.Exit(1)
	}
	if err := manager.Run(ctrl.SetupSignalHandler(), config, chosen); err != nil {
		ctrl.Log.Error(err, "the manager exited")
		os.Exit(1)
	}
}
