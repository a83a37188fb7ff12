package csidriver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// StorageClass parameters that the driver interprets. It only stores others.
const (
	// ParamMaxBytes limits the capacity of a volume, in bytes. Creation and expansion above it
	// fail with OutOfRange.
	ParamMaxBytes = "maxBytes"
	// ParamNodeExpansion "true" leaves the last step of an expansion to the node. Without a
	// kubelet, this step never happens.
	ParamNodeExpansion = "nodeExpansion"
	// ParamHeldBySnapshots "true" makes DeleteVolume fail with FailedPrecondition while the volume
	// has snapshots. Drivers whose snapshots are part of the volume behave like this.
	ParamHeldBySnapshots = "heldBySnapshots"
)

// Keys under which csi-provisioner --extra-create-metadata passes the names of the volume's
// objects.
const (
	paramClaimName      = "csi.storage.k8s.io/pvc/name"
	paramClaimNamespace = "csi.storage.k8s.io/pvc/namespace"
	paramPVName         = "csi.storage.k8s.io/pv/name"
)

// defaultBytes is the size of a volume without a requested size.
const defaultBytes = 1 << 30

// Options configures a Driver.
type Options struct {
	// Name is the driver's name: the provisioner in StorageClasses.
	Name string
	// Dir is the directory for the volumes and the ledger.
	Dir string
	// MaxVolumeBytes limits each volume, and CapacityBytes all together. 0 means no limit.
	MaxVolumeBytes, CapacityBytes int64
	// Attach announces that volumes must be attached to a node.
	Attach bool
	// Node is the name of the node, with a kubelet, for which the driver serves the node service.
	// If it is empty, the driver does not serve the node service.
	Node string
}

// Driver serves the identity, controller and node services of CSI.
type Driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	options Options
	book    *ledger.Writer
	store   *store
	faults  *injector
}

// New returns a driver that continues with the state in its directory.
func New(o Options) (*Driver, error) {
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("create the driver's directory: %w", err)
	}
	book, err := ledger.Open(LedgerPath(o.Dir))
	if err != nil {
		return nil, err
	}
	s, err := openStore(o.Dir, book)
	if err != nil {
		return nil, errors.Join(err, book.Close())
	}
	return &Driver{options: o, book: book, store: s, faults: newInjector(o.Dir)}, nil
}

// Listen listens on a unix socket. It removes an existing one, because a killed driver leaves its
// sockets behind.
func Listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen on the socket: %w", err)
	}
	return listener, nil
}

// Serve serves calls on l until ctx ends.
func (d *Driver) Serve(ctx context.Context, l net.Listener) error {
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	if d.options.Node != "" {
		csi.RegisterNodeServer(server, d)
	}
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return errors.Join(server.Serve(l), d.book.Close())
}

// GetPluginInfo implements csi.IdentityServer.
func (d *Driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.options.Name, VendorVersion: "1"}, nil
}

// Probe implements csi.IdentityServer.
func (d *Driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// GetPluginCapabilities implements csi.IdentityServer.
func (d *Driver) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
			Type: csi.PluginCapability_Service_CONTROLLER_SERVICE,
		}}},
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}, nil
}

// ControllerGetCapabilities implements csi.ControllerServer.
func (d *Driver) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	out := &csi.ControllerGetCapabilitiesResponse{}
	all := []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_MODIFY_VOLUME,
		csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
	}
	if d.options.Attach {
		all = append(all, csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME)
	}
	for _, rpc := range all {
		out.Capabilities = append(out.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: rpc}},
		})
	}
	return out, nil
}

// GetCapacity implements csi.ControllerServer.
func (d *Driver) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	available := int64(1) << 50 // Practically unlimited.
	if d.options.CapacityBytes > 0 {
		available = max(0, d.options.CapacityBytes-d.store.total())
	}
	out := &csi.GetCapacityResponse{AvailableCapacity: available}
	if d.options.MaxVolumeBytes > 0 {
		out.MaximumVolumeSize = wrapperspb.Int64(d.options.MaxVolumeBytes)
	}
	return out, nil
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (d *Driver) ValidateVolumeCapabilities(
	_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if r.GetVolumeId() == "" || len(r.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "volume ID and capabilities are required")
	}
	if _, ok := d.store.get(r.GetVolumeId()); !ok {
		return nil, status.Errorf(codes.NotFound, "volume %s does not exist", r.GetVolumeId())
	}
	return &csi.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
			VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
		},
	}, nil
}

// call executes work, injects faults, and records the outcome before it returns. e is the ledger
// entry, which work completes.
func (d *Driver) call(ctx context.Context, e ledger.Entry, work func(*ledger.Entry) error) error {
	e.Code = ledger.OK
	fault, id, err := d.faults.next(e.Method, e.ClaimNamespace+"/"+e.ClaimName)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if fault != nil && !fault.After {
		err = d.faults.suffer(ctx, fault, id)
	}
	if err == nil {
		err = work(&e)
	}
	if fault != nil && fault.After && err == nil {
		if err = d.faults.suffer(ctx, fault, id); err != nil {
			e.ReplyLost = true
		}
	}
	if err != nil {
		s := status.Convert(err)
		e.Code, e.Message = s.Code().String(), s.Message()
	}
	e.Time = time.Now()
	if bookErr := d.book.Append(e); bookErr != nil {
		return status.Error(codes.Internal, bookErr.Error())
	}
	return err
}

// volumeName matches names that are safe to use in a path.
var volumeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// CreateVolume implements csi.ControllerServer. It is idempotent by name.
func (d *Driver) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	want := volume{
		ID: "vol-" + r.GetName(), Name: r.GetName(), CapacityBytes: size(r.GetCapacityRange()),
		Parameters: classParameters(r.GetParameters()), Mutable: r.GetMutableParameters(),
		ClaimNamespace: r.GetParameters()[paramClaimNamespace],
		ClaimName:      r.GetParameters()[paramClaimName],
		PVName:         r.GetParameters()[paramPVName],
		Source:         sourceID(r.GetVolumeContentSource()),
	}
	for _, c := range r.GetVolumeCapabilities() {
		want.Block = want.Block || c.GetBlock() != nil
	}
	var have volume
	e := want.created()
	e.VolumeID = ""
	err := d.call(ctx, e, func(e *ledger.Entry) error {
		if err := d.admit(r, want); err != nil {
			return err
		}
		var err error
		have, e.Repeated, err = d.store.create(want, d.options.CapacityBytes)
		if err != nil {
			return d.storeError(err, want.Name)
		}
		if limit := r.GetCapacityRange().GetLimitBytes(); e.Repeated &&
			(have.CapacityBytes < want.CapacityBytes || (limit > 0 && have.CapacityBytes > limit)) {
			return status.Errorf(codes.AlreadyExists, "volume %s already exists with %d bytes", have.Name, have.CapacityBytes)
		}
		if have.Source != want.Source {
			return status.Errorf(codes.AlreadyExists, "volume %s already exists, created from %q", have.Name, have.Source)
		}
		e.VolumeID, e.CapacityBytes, e.Data = have.ID, have.CapacityBytes, have.Data
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: have.ID, CapacityBytes: have.CapacityBytes,
		VolumeContext: map[string]string{"directory": have.ID}, ContentSource: r.GetVolumeContentSource(),
	}}, nil
}

// admit rejects volumes that the driver cannot create.
func (d *Driver) admit(r *csi.CreateVolumeRequest, want volume) error {
	switch {
	case !volumeName.MatchString(r.GetName()):
		return status.Errorf(codes.InvalidArgument, "volume name %q is not a valid file name", r.GetName())
	case len(r.GetVolumeCapabilities()) == 0:
		return status.Error(codes.InvalidArgument, "volume capabilities are required")
	}
	if err := d.admitSource(r.GetVolumeContentSource(), want); err != nil {
		return err
	}
	return d.withinLimit(want.Name, want.CapacityBytes, want.Parameters)
}

func (d *Driver) withinLimit(name string, bytes int64, parameters map[string]string) error {
	limit := d.options.MaxVolumeBytes
	if p := parameters[ParamMaxBytes]; p != "" {
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "class parameter %s: %v", ParamMaxBytes, err)
		}
		limit = n
	}
	if limit > 0 && bytes > limit {
		return status.Errorf(codes.OutOfRange, "volume %s: %d bytes requested, but the limit is %d", name, bytes, limit)
	}
	return nil
}

func (d *Driver) storeError(err error, name string) error {
	if errors.Is(err, errFull) {
		return status.Errorf(codes.ResourceExhausted, "volume %s: all %d bytes of the pool are in use",
			name, d.options.CapacityBytes)
	}
	return status.Error(codes.Internal, err.Error())
}

// DeleteVolume implements csi.ControllerServer. It succeeds if the volume does not exist.
func (d *Driver) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	e := d.known(ledger.DeleteVolume, r.GetVolumeId())
	return &csi.DeleteVolumeResponse{}, d.call(ctx, e, func(e *ledger.Entry) error {
		if r.GetVolumeId() == "" {
			return status.Error(codes.InvalidArgument, "volume ID is required")
		}
		if err := d.admitDeletion(r.GetVolumeId()); err != nil {
			return err
		}
		existed, err := d.store.remove(r.GetVolumeId())
		if err != nil {
			return d.storeError(err, r.GetVolumeId())
		}
		e.Repeated = !existed
		return nil
	})
}

// ControllerExpandVolume implements csi.ControllerServer. It never shrinks.
func (d *Driver) ControllerExpandVolume(
	ctx context.Context, r *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	e := d.known(ledger.ExpandVolume, r.GetVolumeId())
	e.CapacityBytes = size(r.GetCapacityRange())
	out := &csi.ControllerExpandVolumeResponse{}
	err := d.call(ctx, e, func(e *ledger.Entry) error {
		want := e.CapacityBytes
		v, ok := d.store.get(r.GetVolumeId())
		if !ok {
			return status.Errorf(codes.NotFound, "volume %s does not exist", r.GetVolumeId())
		}
		if err := d.withinLimit(v.Name, want, v.Parameters); err != nil {
			return err
		}
		e.Repeated = v.CapacityBytes >= want
		v, err := d.store.change(v.ID, d.options.CapacityBytes, func(v *volume) {
			v.CapacityBytes = max(v.CapacityBytes, want)
		})
		if err != nil {
			return d.storeError(err, r.GetVolumeId())
		}
		e.CapacityBytes = v.CapacityBytes
		out.CapacityBytes = v.CapacityBytes
		out.NodeExpansionRequired = v.Parameters[ParamNodeExpansion] == "true"
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ControllerModifyVolume implements csi.ControllerServer. It accepts and stores any parameter.
func (d *Driver) ControllerModifyVolume(
	ctx context.Context, r *csi.ControllerModifyVolumeRequest,
) (*csi.ControllerModifyVolumeResponse, error) {
	e := d.known(ledger.ModifyVolume, r.GetVolumeId())
	e.Parameters = r.GetMutableParameters()
	err := d.call(ctx, e, func(*ledger.Entry) error {
		if _, ok := d.store.get(r.GetVolumeId()); !ok {
			return status.Errorf(codes.NotFound, "volume %s does not exist", r.GetVolumeId())
		}
		_, err := d.store.change(r.GetVolumeId(), 0, func(v *volume) {
			if v.Mutable == nil {
				v.Mutable = map[string]string{}
			}
			maps.Copy(v.Mutable, r.GetMutableParameters())
		})
		if err != nil {
			return d.storeError(err, r.GetVolumeId())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerModifyVolumeResponse{}, nil
}

// known returns the ledger entry for a call that passes only a volume's ID. The other fields come
// from the driver's record of the volume.
func (d *Driver) known(method, id string) ledger.Entry {
	if v, ok := d.store.get(id); ok {
		return v.entry(method)
	}
	return ledger.Entry{Method: method, VolumeID: id}
}

// size returns the required bytes of a capacity range, or the default.
func size(r *csi.CapacityRange) int64 {
	if r.GetRequiredBytes() > 0 {
		return r.GetRequiredBytes()
	}
	if limit := r.GetLimitBytes(); limit > 0 {
		return min(limit, defaultBytes)
	}
	return defaultBytes
}

// classParameters returns a class's parameters without those that the provisioner adds.
func classParameters(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if !strings.HasPrefix(k, "csi.storage.k8s.io/") {
			out[k] = v
		}
	}
	return out
}
