package csidriver

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// serveNode runs a driver with a node service and a registration socket, and returns connections
// to both of its sockets.
func serveNode(t *testing.T, dir string) (driver, registrar *grpc.ClientConn) {
	t.Helper()
	d, err := New(Options{Name: "disks.test", Dir: filepath.Join(dir, "disks"), Node: "node-1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	own, reg := filepath.Join(dir, "csi.sock"), filepath.Join(dir, "reg.sock")
	listener, err := Listen(ctx, own)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- d.Serve(ctx, listener) }()
	go func() { ended <- d.Register(ctx, reg, own) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
	return dial(t, own), dial(t, reg)
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// socketDir returns a directory whose path is short enough for a socket.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestRegistersWithTheKubelet(t *testing.T) {
	dir := socketDir(t)
	reg := filepath.Join(dir, "reg.sock")
	// A driver that was killed leaves its socket behind.
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: reg, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	driver, registrar := serveNode(t, dir)

	kubelet := registration.NewRegistrationClient(registrar)
	info, err := kubelet.GetInfo(t.Context(), &registration.InfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := &registration.PluginInfo{
		Type: "CSIPlugin", Name: "disks.test", Endpoint: filepath.Join(dir, "csi.sock"), SupportedVersions: []string{"1.0.0"},
	}
	if diff := cmp.Diff(want, info, protocmp.Transform()); diff != "" {
		t.Errorf("plugin info (-want +got):\n%s", diff)
	}
	if _, err := kubelet.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		t.Error(err)
	}
	_, err = kubelet.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{Error: "no"})
	if got := status.Code(err); got != codes.FailedPrecondition {
		t.Errorf("response to a rejected registration: %s, want %s", got, codes.FailedPrecondition)
	}
	node, err := csi.NewNodeClient(driver).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if node.GetNodeId() != "node-1" {
		t.Errorf("node ID %q, want %q", node.GetNodeId(), "node-1")
	}
}

func TestNodeRejects(t *testing.T) {
	driver, _ := serveNode(t, socketDir(t))
	node := csi.NewNodeClient(driver)
	mounted := &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}}
	block := &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
	for name, test := range map[string]struct {
		request *csi.NodePublishVolumeRequest
		want    codes.Code
	}{
		"an unknown volume": {&csi.NodePublishVolumeRequest{VolumeId: "vol-x", TargetPath: "/x", VolumeCapability: mounted}, codes.NotFound},
		"no target":         {&csi.NodePublishVolumeRequest{VolumeId: "vol-x", VolumeCapability: mounted}, codes.InvalidArgument},
		"a block volume":    {&csi.NodePublishVolumeRequest{VolumeId: "vol-x", TargetPath: "/x", VolumeCapability: block}, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := node.NodePublishVolume(t.Context(), test.request); status.Code(err) != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}
