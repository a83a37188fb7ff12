package csidriver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NodeGetInfo implements csi.NodeServer.
func (d *Driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.options.Node}, nil
}

// NodeGetCapabilities implements csi.NodeServer. A disk is published in one step, without staging.
func (d *Driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume implements csi.NodeServer. It mounts the disk's files at the target. It does
// not support block volumes.
func (d *Driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetTargetPath() == "" || r.GetVolumeCapability().GetMount() == nil {
		return nil, status.Error(codes.InvalidArgument, "volume ID, target path and a capability to mount are required")
	}
	// Another driver may have created the volume, if several share the directory.
	disk := filepath.Join(d.store.dir, r.GetVolumeId(), filesDir)
	if _, err := os.Stat(disk); err != nil || filepath.Base(r.GetVolumeId()) != r.GetVolumeId() {
		return nil, status.Errorf(codes.NotFound, "volume %s does not exist", r.GetVolumeId())
	}
	if err := publish(disk, r.GetTargetPath(), r.GetReadonly()); err != nil {
		return nil, status.Errorf(codes.Internal, "publish volume %s: %v", r.GetVolumeId(), err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume implements csi.NodeServer. It succeeds if the volume is not published.
func (d *Driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetTargetPath() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID and target path are required")
	}
	if err := unpublish(r.GetTargetPath()); err != nil {
		return nil, status.Errorf(codes.Internal, "unpublish volume %s: %v", r.GetVolumeId(), err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func publish(disk, target string, readOnly bool) error {
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	there, err := same(disk, target)
	if err != nil || there { // The kubelet repeats calls.
		return err
	}
	return mount(disk, target, readOnly)
}

// same reports whether the target is the disk's directory, which means that it is mounted there.
func same(disk, target string) (bool, error) {
	a, err := os.Stat(disk)
	if err != nil {
		return false, err
	}
	b, err := os.Stat(target)
	if err != nil {
		return false, err
	}
	return os.SameFile(a, b), nil
}

// unpublish removes the target only once nothing is mounted there: os.Remove fails on a directory
// with files, so it never removes the data on a disk.
func unpublish(target string) error {
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := unmount(target); err != nil {
		return fmt.Errorf("unmount %s: %w", target, err)
	}
	return os.Remove(target)
}
