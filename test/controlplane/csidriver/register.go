package csidriver

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// csiVersion is the version of CSI that the driver announces to the kubelet.
const csiVersion = "1.0.0"

// registrar serves the registration socket. The kubelet finds the socket and requests the
// plugin's name, type and endpoint.
type registrar struct {
	registration.UnimplementedRegistrationServer

	name, endpoint string
}

// GetInfo implements registration.RegistrationServer.
func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint, SupportedVersions: []string{csiVersion},
	}, nil
}

// NotifyRegistrationStatus implements registration.RegistrationServer. After an error, the kubelet
// retries the registration.
func (r registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !s.GetPluginRegistered() {
		return nil, status.Errorf(codes.FailedPrecondition, "the kubelet rejected %s: %s", r.name, s.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// Register registers the driver with its node's kubelet until ctx ends. It serves path, a socket in
// the kubelet's plugins_registry directory. endpoint is the path of the driver's own socket from
// the kubelet's point of view.
func (d *Driver) Register(ctx context.Context, path, endpoint string) error {
	listener, err := Listen(ctx, path)
	if err != nil {
		return fmt.Errorf("register with the kubelet: %w", err)
	}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, registrar{name: d.options.Name, endpoint: endpoint})
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return server.Serve(listener)
}
