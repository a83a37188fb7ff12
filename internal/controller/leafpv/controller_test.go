package leafpv

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member"
)

// arriving is a cache that a volume comes into after the first list.
type arriving struct {
	client.Reader
	volume *corev1.PersistentVolume
}

func (arriving) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (a arriving) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	pv, ok := into.(*corev1.PersistentVolume)
	if !ok || key.Name != a.volume.Name {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	a.volume.DeepCopyInto(pv)
	return nil
}

// A host PV that we have just made may be in the cache by the second look, and not by the
// first: it is the leaf's own, and none is made beside it under another name.
func TestOneHostVolumeForALeaf(t *testing.T) {
	for name, pick := range map[string]func(*observed){
		"its plain name": func(*observed) {},
		"the other name": func(o *observed) { o.host.Name = suffixed },
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(mirrored, pick)
			r := &reconciler{Link: &member.Link{Member: here, Host: arriving{volume: o.host}}}
			o.host, o.root.Spec.VolumeName = nil, ""
			if err := r.observeHost(t.Context(), &o); err != nil {
				t.Fatal(err)
			}
			if o.host == nil {
				t.Fatal("not seen as the leaf's own")
			}
			if d, made := decide(o).(create); made {
				t.Errorf("volume %s is made beside it", d.host.Name)
			}
		})
	}
	o := seen(stamped)
	other := seen(mirrored).host
	other.Spec.CSI.VolumeHandle, other.Labels = "elsewhere/pv-1", nil
	r := &reconciler{Link: &member.Link{Member: here, Host: arriving{volume: other}}}
	if err := r.observeHost(t.Context(), &o); err != nil || o.host != nil || !o.nameTaken || o.suffixTaken {
		t.Errorf("somebody else's volume: host %v, name taken %v, the other name taken %v, error %v", o.host, o.nameTaken, o.suffixTaken, err)
	}
}
