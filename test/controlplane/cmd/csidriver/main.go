// Command csidriver serves the CSI driver of loopback clusters on a unix socket.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/xylem-io/xylem/test/controlplane/csidriver"
)

func main() {
	var o csidriver.Options
	socket := flag.String("socket", "", "path of the unix socket to serve on")
	flag.StringVar(&o.Name, "name", "", "name of the driver")
	flag.StringVar(&o.Dir, "dir", "", "directory of volumes and ledger")
	flag.Int64Var(&o.MaxVolumeBytes, "max-volume-bytes", 0, "largest volume, 0 for no limit")
	flag.Int64Var(&o.CapacityBytes, "capacity-bytes", 0, "capacity of all volumes together, 0 for no limit")
	flag.BoolVar(&o.Attach, "attach", false, "announce that volumes have to be attached to nodes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, *socket)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "csidriver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o csidriver.Options, socket string) error {
	if o.Name == "" || o.Dir == "" || socket == "" {
		return errors.New("--name, --dir and --socket are required")
	}
	driver, err := csidriver.New(o)
	if err != nil {
		return err
	}
	// A driver that was killed leaves its socket behind.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the old socket: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	fmt.Println("serving on", socket)
	return driver.Serve(ctx, listener)
}
