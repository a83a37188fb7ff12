package member

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// snapshotLists are the kinds that the member must serve.
func snapshotLists() map[string]client.ObjectList {
	return map[string]client.ObjectList{
		"volumesnapshots": &snapshotv1.VolumeSnapshotList{}, "volumesnapshotcontents": &snapshotv1.VolumeSnapshotContentList{},
		"volumesnapshotclasses": &snapshotv1.VolumeSnapshotClassList{},
	}
}

// SnapshotsServed returns why a cluster's snapshots cannot be listed, or nil if they can. An error
// means that the state is unknown. who is the cluster's name in the message.
func SnapshotsServed(ctx context.Context, live client.Reader, who string) (*mirror.Refusal, error) {
	for resource, list := range snapshotLists() {
		err := live.List(ctx, list, client.Limit(1))
		switch {
		case err == nil:
		case apierrors.IsNotFound(err):
			return mirror.NewRefusal(v1alpha1.ReasonSnapshotsUnsupported, "%s does not serve snapshot.storage.k8s.io/v1. In that cluster, install the VolumeSnapshot CustomResourceDefinitions, the snapshot-controller, and the csi-snapshotter of its driver", who), nil
		case apierrors.IsForbidden(err):
			return mirror.NewRefusal(v1alpha1.ReasonSnapshotsUnsupported, "%s does not let Xylem list %s.snapshot.storage.k8s.io: %s. In that cluster, grant the permissions from config/member, or upgrade the chart xylem-member", who, resource, mirror.PlainText(err.Error(), 500)), nil
		default:
			return nil, fmt.Errorf("list %s: %w", resource, err)
		}
	}
	return nil, nil
}
