// Command podnet provides the Pod network of a kind cluster, because kind's own kindnetd is not
// available as a Go module. It runs in the DaemonSet that kind creates for kindnetd. It writes its
// node's CNI configuration, and maintains a route to the Pods of every other node. It supports only
// IPv4, and no network policies.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// conflist is the path of the CNI configuration, which kind mounts here.
	conflist = "/etc/cni/net.d/10-podnet.conflist"
	// interval is the interval between reads of the nodes. Nodes rarely change, but a node loses
	// its routes when it restarts.
	interval = 5 * time.Second
	// patience is the timeout of one read. The first reads fail until kube-proxy has made the
	// address of the API server reachable, so no Pod gets a network before Services work.
	patience = 2 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		slog.Error("podnet ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	self := os.Getenv("HOST_IP")
	if net.ParseIP(self).To4() == nil {
		return fmt.Errorf("HOST_IP is %q, not the IPv4 address of this node", self)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("load the cluster's configuration: %w", err)
	}
	config.Timeout = patience
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := reconcile(ctx, client, self); err != nil {
			slog.Warn("trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func reconcile(ctx context.Context, client kubernetes.Interface, self string) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	var errs []error
	for _, node := range nodes.Items {
		address := internalIP(node)
		switch {
		case address == "" || node.Spec.PodCIDR == "":
			// A node without an IPv4 address or a Pod range gets no route.
		case address == self:
			errs = append(errs, configure(node.Spec.PodCIDR))
		default:
			errs = append(errs, route(node.Spec.PodCIDR, address))
		}
	}
	return errors.Join(errs...)
}

func internalIP(node corev1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && net.ParseIP(a.Address).To4() != nil {
			return a.Address
		}
	}
	return ""
}

// configure writes the CNI configuration for the Pods of this node, unless it exists.
func configure(subnet string) error {
	content := fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": "podnet",
  "plugins": [
    {
      "type": "ptp", "ipMasq": true,
      "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state", "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": %q}]]}
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, subnet)
	if was, err := os.ReadFile(conflist); err == nil && string(was) == content {
		return nil
	}
	// The runtime reads the directory after every change, so the file must be complete when it gets
	// its final name.
	whole := filepath.Join(filepath.Dir(conflist), ".podnet")
	if err := os.WriteFile(whole, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write the network's configuration: %w", err)
	}
	if err := os.Rename(whole, conflist); err != nil {
		return fmt.Errorf("write the network's configuration: %w", err)
	}
	slog.Info("the Pod network of this node is configured", "subnet", subnet)
	return nil
}

func route(subnet, via string) error {
	_, destination, err := net.ParseCIDR(subnet)
	if err != nil {
		return fmt.Errorf("read the subnet of the node at %s: %w", via, err)
	}
	if err := netlink.RouteReplace(&netlink.Route{Dst: destination, Gw: net.ParseIP(via)}); err != nil {
		return fmt.Errorf("route %s to the node at %s: %w", subnet, via, err)
	}
	return nil
}
