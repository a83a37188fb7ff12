package proof

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// pages is a reader that lists PVs in pages.
type pages struct {
	client.Reader
	pages              [][]corev1.PersistentVolume
	getFails, oneFails error
}

func (p pages) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, page := range p.pages {
		for i := range page {
			if pv, ok := into.(*corev1.PersistentVolume); ok && page[i].Name == key.Name {
				page[i].DeepCopyInto(pv)
				return nil
			}
		}
	}
	if p.getFails != nil {
		return p.getFails
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (p pages) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	list, ok := into.(*corev1.PersistentVolumeList)
	if !ok || len(p.pages) == 0 {
		return nil
	}
	if o.Continue == "" {
		list.Items = p.pages[0]
		if len(p.pages) > 1 {
			list.Continue = "second"
		}
		return nil
	}
	list.Items, list.Continue = p.pages[1], ""
	return p.oneFails
}

func TestNotMirrored(t *testing.T) {
	down := errors.New("connection refused")
	mirrorOf := func(name, handle string, change ...func(*corev1.PersistentVolume)) corev1.PersistentVolume {
		pv := corev1.PersistentVolume{}
		pv.Name = name
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.ProvisionerName, VolumeHandle: handle}
		for _, f := range change {
			f(&pv)
		}
		return pv
	}
	other := mirrorOf("pv-2", "id38/pv-2")
	promise := mirrorOf("pvc-mock-1", "mock-vol-1", func(pv *corev1.PersistentVolume) {
		pv.Spec.CSI.Driver = v1alpha1.PromiseDriverName
		pv.Annotations = map[string]string{v1alpha1.AnnotationVolume: "id38/pv-1"}
	})
	for name, tc := range map[string]struct {
		cached, live pages
		by           string
		err          error
	}{
		"no volumes":                                     {},
		"other volumes on two pages":                     {live: pages{pages: [][]corev1.PersistentVolume{{other}, {other}}}},
		"another member's volume":                        {live: pages{pages: [][]corev1.PersistentVolume{{mirrorOf("pv-1", "id39/pv-1")}}}},
		"another driver's volume":                        {live: pages{pages: [][]corev1.PersistentVolume{{mirrorOf("pv-1", "id38/pv-1", func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "disk.example.com" })}}}},
		"a mirror with the plain name":                   {live: pages{pages: [][]corev1.PersistentVolume{{mirrorOf("pv-1", "id38/pv-1")}}}, by: "pv-1"},
		"a mirror with the suffixed name":                {live: pages{pages: [][]corev1.PersistentVolume{{mirrorOf(hostpv.HostVolumeName("pv-1", "id38", true), "id38/pv-1")}}}, by: hostpv.HostVolumeName("pv-1", "id38", true)},
		"a mirror with another name, on the second page": {live: pages{pages: [][]corev1.PersistentVolume{{other}, {mirrorOf("mine", "id38/pv-1")}}}, by: "mine"},
		"a promise records the leaf PV":                  {live: pages{pages: [][]corev1.PersistentVolume{{promise}}}, by: "pvc-mock-1"},
		"a mirror that only the cache contains":          {cached: pages{pages: [][]corev1.PersistentVolume{{mirrorOf("mine", "id38/pv-1")}}}, by: "mine"},
		"the host does not respond":                      {live: pages{getFails: down}, err: down},
		"the second page fails":                          {live: pages{pages: [][]corev1.PersistentVolume{{other}, {}}, oneFails: down}, err: down},
	} {
		t.Run(name, func(t *testing.T) {
			p := prover(&tc.live)
			p.Host = tc.cached
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
			none, proven, err := p.ProveNotMirrored(t.Context(), claim, true)
			by := none.MirroredBy
			if !errors.Is(err, tc.err) || proven != (tc.by == "" && tc.err == nil) {
				t.Errorf("proven is %t, error is %v; want error %v", proven, err, tc.err)
			}
			if by != nil && by.Name != tc.by || by == nil && tc.by != "" {
				t.Errorf("By is %v, want %q", by, tc.by)
			}
		})
	}
}
