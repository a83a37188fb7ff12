package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// putters is the number of objects that Put writes at the same time.
const putters = 32

// Put writes claims and PVs directly to etcd, as the API server would store them, much faster than by
// requests to the API server. It replaces existing objects. No admission, defaulting or validation takes
// place, so set all fields, including the UID. Watches of the API server show the objects.
//
// It does not write several objects in one transaction, because these would have the same
// resourceVersion, and a list of the API server could end between two of them.
func (c *Cluster) Put(ctx context.Context, objects ...client.Object) error {
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	encoder := scheme.Codecs.EncoderForVersion(serializer, corev1.SchemeGroupVersion)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(putters)
	for _, obj := range objects {
		group.Go(func() error {
			if err := c.put(ctx, encoder, obj); err != nil {
				return fmt.Errorf("write %s to the etcd of %s: %w", client.ObjectKeyFromObject(obj), c.Name(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (c *Cluster) put(ctx context.Context, encoder runtime.Encoder, obj client.Object) error {
	value, err := runtime.Encode(encoder, obj)
	if err != nil {
		return err
	}
	plural := "persistentvolumes"
	if obj.GetNamespace() != "" {
		plural = "persistentvolumeclaims"
	}
	body, err := json.Marshal(struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}{[]byte(path.Join("/registry", plural, obj.GetNamespace(), obj.GetName())), value})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.etcdAddress+"/v3/kv/put", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := etcdClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return err
}

// etcdClient keeps a connection for each concurrent request.
var etcdClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4 * putters}}
