package index

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
)

// FindObject reads one object. It returns nil if the object does not exist, or if the key has no name.
func FindObject[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r client.Reader, key types.NamespacedName) (P, error) {
	object := P(new(T))
	found, err := GetIfExists(ctx, r, key, object)
	if !found {
		return nil, err
	}
	return object, nil
}

// FindStamped reads one object from a member like FindObject, and also returns its origin. It returns nil if the
// object does not exist or lacks this host's stamp.
func FindStamped[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r client.Reader, hostID string, key types.NamespacedName) (P, mirror.Origin, error) {
	leaf, err := FindObject[T, P](ctx, r, key)
	if leaf == nil {
		return nil, mirror.Origin{}, err
	}
	origin, ours := mirror.LeafOriginFromHost(hostID, leaf)
	if !ours {
		return nil, mirror.Origin{}, nil
	}
	return leaf, origin, nil
}

// GetIfExists reads one object like FindObject. It returns false if the object does not exist, or if the key has
// no name.
func GetIfExists(ctx context.Context, r client.Reader, key types.NamespacedName, into client.Object) (bool, error) {
	if key.Name == "" {
		return false, nil
	}
	err := r.Get(ctx, key, into, ReadOnly)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		kind := cmp.Or(into.GetObjectKind().GroupVersionKind().Kind, reflect.TypeOf(into).Elem().Name())
		return false, fmt.Errorf("read %s %s: %w", kind, strings.TrimPrefix(key.String(), "/"), err)
	}
	return true, nil
}

// ClusterScopedKey returns the key of the cluster-scoped object with the given name.
func ClusterScopedKey(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// VolumeOf returns the host PV to which a claim is bound, or nil.
func VolumeOf(ctx context.Context, r client.Reader, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	if claim.Status.Phase != corev1.ClaimBound {
		return nil, nil //nolint:nilnil // absence is an answer, as with FindObject
	}
	pv, err := FindObject[corev1.PersistentVolume](ctx, r, ClusterScopedKey(claim.Spec.VolumeName))
	if err != nil || pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
		return nil, err
	}
	return pv, nil
}
