// Command clusters starts and removes the kind clusters of the end-to-end tests for manual
// work: a host and two members, with the images on their nodes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/e2e/fleet"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "clusters up|down") }
	flag.Parse()
	log.SetLogger(logr.Discard()) // Disable the clients' logs.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, flag.Arg(0))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clusters:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, verb string) error {
	root, err := kubebin.Root()
	if err != nil {
		return err
	}
	clusters := fleet.NewKind(fleet.KindOptions{
		Dir: filepath.Join(root, fleet.KindDir), NodeImage: os.Getenv(fleet.NodeImageEnv), Archive: filepath.Join(root, fleet.ImageArchive),
		Progress: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	})
	switch verb {
	case "up":
		if err := clusters.Up(ctx); err != nil {
			return err
		}
		fmt.Printf(next, fleet.KindDir, clusters.Server(fleet.First))
		return nil
	case "down":
		return clusters.Delete()
	default:
		return fmt.Errorf("unknown argument %q: use up or down", verb)
	}
}

const next = `
A host and two members, cluster38 and cluster39, are running with the manager's image and
the tests' image on their nodes. Their kubeconfigs are in %[1]s. To continue:

  export KUBECONFIG=$PWD/%[1]s/host.kubeconfig PATH=$PWD/bin:$PATH
  helm install xylem charts/xylem -n xylem-system --create-namespace --set image.tag=dev
  kubectl xylem register cluster38 --member-kubeconfig %[1]s/cluster38.kubeconfig --member-server %[2]s
  kubectl apply -f config/samples/storageclass.yaml -f config/samples/nginx.yaml

make cleanup-test-e2e removes the clusters.
`
