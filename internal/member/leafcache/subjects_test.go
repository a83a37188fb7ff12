package leafcache

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/membertest"
)

// holding returns an informer whose cache has objects. It is never synced.
func holding(t *testing.T, objects ...k8sruntime.Object) toolscache.SharedIndexInformer {
	t.Helper()
	informer := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{}, objects[0], 0, toolscache.Indexers{})
	for _, object := range objects {
		if err := informer.GetIndexer().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return informer
}

func hostSubjects(t *testing.T) *eventSubjects {
	t.Helper()
	namespace := func(name, host string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelHost: host}}}
	}
	volume := func(name, claimed string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: claimed, Name: "data"}}}
	}
	free, stamped := volume("free", "db"), volume("stamped", "db")
	free.Spec.ClaimRef = nil
	stamped.Annotations = map[string]string{v1alpha1.AnnotationRoot: "shop/data"}
	return &eventSubjects{hostID: "host",
		namespaces: holding(t, namespace("shop", "host"), namespace("db", ""), namespace("other", "another")),
		volumes:    holding(t, volume("ours", "shop"), volume("theirs", "db"), stamped, free),
	}
}

func warningAbout(kind, namespace, name string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: cmp.Or(namespace, "default"), Name: name + ".1", ManagedFields: make([]metav1.ManagedFieldsEntry, 1)},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name, UID: types.UID(name)},
		Type:           corev1.EventTypeWarning, Reason: "BackOff", Message: "Back-off restarting failed container",
	}
}

// A member's Warning events about other objects take no memory.
func TestEventsOfOthersAreNotKept(t *testing.T) {
	s := hostSubjects(t)
	for name, tc := range map[string]struct {
		event *corev1.Event
		kept  bool
	}{
		"a Pod in this host's namespace":          {warningAbout("Pod", "shop", "web"), true},
		"a claim in this host's namespace":        {warningAbout("PersistentVolumeClaim", "shop", "data"), true},
		"another kind in this host's namespace":   {warningAbout("Deployment", "shop", "web"), false},
		"a Pod in another namespace":              {warningAbout("Pod", "db", "web"), false},
		"a Pod in another host's namespace":       {warningAbout("Pod", "other", "web"), false},
		"a Pod in a namespace that is not cached": {warningAbout("Pod", "new", "web"), false},
		"a node":                                     {warningAbout("Node", "", "worker"), false},
		"a volume of this host's claim":              {warningAbout("PersistentVolume", "", "ours"), true},
		"a stamped volume of another claim":          {warningAbout("PersistentVolume", "", "stamped"), true},
		"a volume of another claim":                  {warningAbout("PersistentVolume", "", "theirs"), false},
		"a volume without a claim":                   {warningAbout("PersistentVolume", "", "free"), true},
		"a volume that is not cached":                {warningAbout("PersistentVolume", "", "new"), true},
		"a snapshot content, whose owner is unknown": {warningAbout("VolumeSnapshotContent", "", "content"), true},
	} {
		t.Run(name, func(t *testing.T) {
			obj, err := s.reduceEvent(tc.event)
			if err != nil {
				t.Fatal(err)
			}
			event, kept := obj.(*corev1.Event)
			if kept != tc.kept {
				t.Errorf("kept: %t, want %t", kept, tc.kept)
			}
			if kept && (event.ManagedFields != nil || event.Message == "") {
				t.Errorf("kept %+v", event)
			}
		})
	}
}

// Events are listed only when the objects that they may be about are known.
func TestEventsWaitForTheirSubjects(t *testing.T) {
	s := hostSubjects(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.waitForInformers(ctx); err == nil {
		t.Error("events were listed before namespaces and volumes")
	}
}

// Another Pod of the member has a budget of memory: raise it only with a reason.
func TestWorkloadsTakeLittleMemory(t *testing.T) {
	const budget = 700 // bytes for each Pod
	each := membertest.HeapBytesPerValue(t, 2000, func(i int) any {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: fmt.Sprintf("postgres-5d4f8c7b9-%05d", i), UID: types.UID(strings.Repeat("u", 36)), ResourceVersion: fmt.Sprint(i)},
			Spec: corev1.PodSpec{NodeName: fmt.Sprint("worker-", i%100)}}
		for range 3 {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Image: strings.Repeat("i", 50), Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(fmt.Sprint(i%10+1, "00m")), corev1.ResourceMemory: resource.MustParse("1Gi")}}})
		}
		obj, err := reduceWorkload(pod)
		if err != nil {
			t.Fatal(err)
		}
		return obj
	})
	if each > budget {
		t.Errorf("each Pod takes %d bytes, want at most %d", each, budget)
	}
}
