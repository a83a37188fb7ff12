package csidriver

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// ControllerPublishVolume implements csi.ControllerServer. It attaches a single-node volume to
// only one node at a time.
func (d *Driver) ControllerPublishVolume(
	ctx context.Context, r *csi.ControllerPublishVolumeRequest,
) (*csi.ControllerPublishVolumeResponse, error) {
	e := d.known(ledger.PublishVolume, r.GetVolumeId())
	e.NodeID = r.GetNodeId()
	err := d.call(ctx, e, func(e *ledger.Entry) error {
		v, ok := d.store.get(r.GetVolumeId())
		switch {
		case !ok:
			return status.Errorf(codes.NotFound, "volume %s does not exist", r.GetVolumeId())
		case r.GetNodeId() == "":
			return status.Error(codes.InvalidArgument, "node ID is required")
		case slices.Contains(v.Nodes, r.GetNodeId()):
			e.Repeated = true
			return nil
		case len(v.Nodes) > 0 && !severalNodes(r.GetVolumeCapability()):
			return status.Errorf(codes.FailedPrecondition, "volume %s is attached to %q", v.ID, v.Nodes)
		}
		return d.attach(v.ID, func(nodes []string) []string { return append(nodes, r.GetNodeId()) })
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

// ControllerUnpublishVolume implements csi.ControllerServer. Without a node, it detaches the
// volume from all nodes. It succeeds if the volume is not attached.
func (d *Driver) ControllerUnpublishVolume(
	ctx context.Context, r *csi.ControllerUnpublishVolumeRequest,
) (*csi.ControllerUnpublishVolumeResponse, error) {
	e := d.known(ledger.UnpublishVolume, r.GetVolumeId())
	e.NodeID = r.GetNodeId()
	return &csi.ControllerUnpublishVolumeResponse{}, d.call(ctx, e, func(e *ledger.Entry) error {
		v, ok := d.store.get(r.GetVolumeId())
		all := r.GetNodeId() == ""
		if !ok || len(v.Nodes) == 0 || (!all && !slices.Contains(v.Nodes, r.GetNodeId())) {
			e.Repeated = true
			return nil
		}
		return d.attach(v.ID, func(nodes []string) []string {
			return slices.DeleteFunc(nodes, func(n string) bool { return all || n == r.GetNodeId() })
		})
	})
}

// attach applies f to the list of nodes to which a volume is attached.
func (d *Driver) attach(id string, f func([]string) []string) error {
	_, err := d.store.change(id, 0, func(v *volume) { v.Nodes = f(slices.Clone(v.Nodes)) })
	if errors.Is(err, fs.ErrNotExist) {
		return status.Errorf(codes.NotFound, "volume %s does not exist", id)
	}
	if err != nil {
		return d.storeError(err, id)
	}
	return nil
}

// severalNodes reports whether several nodes may use the volume at the same time.
func severalNodes(c *csi.VolumeCapability) bool {
	switch c.GetAccessMode().GetMode() {
	case csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
		csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		return true
	default:
		return false
	}
}
