// Command clusters starts a host and members on loopback, for manual experiments. It prints how to
// connect to them, and stops them on Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/xylem-io/xylem/test/controlplane"
)

func main() {
	dir := flag.String("dir", "", "directory for data and logs, kept after exit (default: a temporary directory)")
	snapshots := flag.Bool("snapshots", false, "enable VolumeSnapshots in all clusters")
	attach := flag.Bool("attach", false, "make the members' drivers attach volumes")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: clusters [--dir DIR] [--snapshots] [--attach] [MEMBER...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	members := controlplane.Members(flag.Args()...)
	for i := range members {
		members[i].Snapshots, members[i].Attach = *snapshots, *attach
	}
	err := run(ctx, controlplane.Options{
		Dir: *dir, Host: controlplane.ClusterOptions{Snapshots: *snapshots}, Members: members,
		Progress: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clusters:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o controlplane.Options) (err error) {
	fleet, err := controlplane.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.Stop(context.WithoutCancel(ctx))) }()
	for _, c := range fleet.Clusters() {
		fmt.Printf("%s:\n  export KUBECONFIG=%s\n  through the proxy: %s\n", c.Name(), c.KubeconfigPath(), c.Server(controlplane.ViaProxy))
	}
	fmt.Println("kubectl:", fleet.Kubectl())
	fmt.Println("Press Ctrl-C to stop all clusters.")
	<-ctx.Done()
	return nil
}
