// Command manager runs Xylem's controllers against the host cluster.
package main

import (
	"flag"
	"os"

	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/xylem-io/xylem/internal/manager"
)

func main() {
	var options manager.Options
	// An error says what was being done to which object; a stack adds nothing.
	logging := zap.Options{StacktraceLevel: zapcore.PanicLevel}
	options.AddFlags(flag.CommandLine)
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	config, err := ctrl.GetConfig()
	if err != nil {
		ctrl.Log.Error(err, "find the host's kubeconfig")
		os.Exit(1)
	}
	if err := manager.Run(ctrl.SetupSignalHandler(), config, options); err != nil {
		ctrl.Log.Error(err, "the manager ended")
		os.Exit(1)
	}
}
