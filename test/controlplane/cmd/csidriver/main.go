// Command csidriver serves the CSI driver of the tests' clusters on a unix socket. On a node with
// a kubelet, it also registers itself there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/xylem-io/xylem/test/controlplane/csidriver"
)

func main() {
	var o csidriver.Options
	socket := flag.String("socket", "", "path of the driver's unix socket")
	flag.StringVar(&o.Name, "name", "", "name of the driver")
	flag.StringVar(&o.Dir, "dir", "", "directory of volumes and ledger")
	flag.Int64Var(&o.MaxVolumeBytes, "max-volume-bytes", 0, "maximum size of a volume, 0 for no limit")
	flag.Int64Var(&o.CapacityBytes, "capacity-bytes", 0, "total capacity of all volumes, 0 for no limit")
	flag.BoolVar(&o.Attach, "attach", false, "report that volumes must be attached to nodes")
	flag.StringVar(&o.Node, "node", "", "name of the node whose Pods use the volumes; empty without a kubelet")
	registration := flag.String("registration", "", "path of the socket for the registration with the node's kubelet; requires --node")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, *socket, *registration)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "csidriver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o csidriver.Options, socket, registration string) error {
	switch {
	case o.Name == "" || o.Dir == "" || socket == "":
		return errors.New("--name, --dir and --socket are required")
	case (o.Node == "") != (registration == ""):
		return errors.New("--node and --registration must be set together")
	}
	driver, err := csidriver.New(o)
	if err != nil {
		return err
	}
	listener, err := csidriver.Listen(ctx, socket)
	if err != nil {
		return err
	}
	fmt.Println("serving on", socket)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return driver.Serve(ctx, listener) })
	if registration != "" {
		group.Go(func() error { return driver.Register(ctx, registration, socket) })
	}
	return group.Wait()
}
