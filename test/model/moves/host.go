package moves

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/move/transfer"
	"github.com/xylem-io/xylem/test/model/api"
)

// errKilled is the result of all requests of a command that was killed.
var errKilled = errors.New("the command was killed")

// host executes the requests of one run of a command.
type host struct {
	client.Client
	w *world
	// eager lets Kubernetes and Xylem act after each request. Otherwise, they act only while the
	// command waits.
	eager bool
	// before runs before each request, with the number of earlier requests.
	before func(n int)
	// killAfter is the number of changes after which the command is killed, or -1.
	killAfter int

	// turn serializes concurrent requests. It is a channel, because time in a synctest bubble stands
	// still while a goroutine waits for a mutex.
	turn              chan struct{}
	requests, changes int
	// moments are the requests that change something or read a disk, and those that follow them. A
	// disruption between other requests has the same effects as one at the next moment, or at the
	// last.
	moments []int
	follows bool
	last    time.Time
	killed  bool
}

func newHost(w *world, eager bool) *host {
	return &host{w: w, eager: eager, killAfter: -1, turn: make(chan struct{}, 1)}
}

// lock waits for the turn of a request, and returns a function that ends it.
func (h *host) lock() func() {
	h.turn <- struct{}{}
	return func() { <-h.turn }
}

// begin runs before each request.
func (h *host) begin(important bool) error {
	if h.killed {
		return errKilled
	}
	if now := time.Now(); now != h.last {
		h.last = now
		h.w.settle()
	}
	if h.before != nil {
		h.before(h.requests)
	}
	if important || h.follows || h.requests == 0 {
		h.moments = append(h.moments, h.requests)
	}
	h.follows = important
	h.requests++
	return nil
}

// end runs after each change that the command made.
func (h *host) end() error {
	h.changes++
	h.w.check()
	if h.changes == h.killAfter {
		h.killed = true
		return errKilled
	}
	if h.eager {
		h.w.settle()
		h.w.check()
	}
	return nil
}

// objects returns all objects with the same type as like.
func (h *host) objects(like client.Object) []client.Object {
	var found []client.Object
	for _, obj := range h.w.fixed() {
		if reflect.TypeOf(obj) == reflect.TypeOf(like) {
			found = append(found, obj)
		}
	}
	for _, obj := range all[client.Object](h.w, keyOf(like).kind) {
		found = append(found, api.Copy(obj))
	}
	return found
}

func (h *host) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	defer h.lock()()
	if err := h.begin(false); err != nil {
		return err
	}
	for _, obj := range h.objects(into) {
		if obj.GetName() == key.Name {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj).Elem())
			return nil
		}
	}
	return api.NotFound(into, key.Name)
}

func (h *host) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	defer h.lock()()
	if err := h.begin(false); err != nil {
		return err
	}
	var options client.ListOptions
	options.ApplyOptions(opts)
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	like, ok := reflect.New(reflect.TypeOf(items).Elem().Elem()).Interface().(client.Object)
	if !ok {
		return fmt.Errorf("%T has no objects", list)
	}
	var found []runtime.Object
	for _, obj := range h.objects(like) {
		if options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
			found = append(found, obj)
		}
	}
	return meta.SetList(list, found)
}

func (h *host) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	defer h.lock()()
	if err := h.begin(true); err != nil {
		return err
	}
	if h.w.objects[keyOf(obj)] != nil {
		return api.Exists(obj)
	}
	obj.SetUID(h.w.uid())
	stored := api.Copy(obj)
	switch stored := stored.(type) {
	case *corev1.PersistentVolumeClaim:
		stored.Status.Phase = corev1.ClaimPending
	case *corev1.Pod:
		stored.Status.Phase = corev1.PodPending
	}
	h.w.put(stored)
	obj.SetResourceVersion(stored.GetResourceVersion())
	return h.end()
}

func (h *host) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	defer h.lock()()
	if err := h.begin(true); err != nil {
		return err
	}
	_, after, err := api.Patch(obj, patch, func(want metav1.Preconditions) (client.Object, error) { return h.current(obj, want) })
	if err != nil {
		return err
	}
	h.w.put(after)
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(after.DeepCopyObject()).Elem())
	return h.end()
}

func (h *host) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	defer h.lock()()
	if err := h.begin(true); err != nil {
		return err
	}
	before, err := h.current(obj, api.Preconditions(opts))
	if err != nil {
		return err
	}
	h.w.remove(before)
	return h.end()
}

// current returns the object to write if it meets the preconditions.
func (h *host) current(obj client.Object, want metav1.Preconditions) (client.Object, error) {
	there := h.w.objects[keyOf(obj)]
	if there == nil {
		return nil, api.NotFound(obj, obj.GetName())
	}
	return there, api.Check(there, want)
}

// remove deletes an object. Claims and Pods exist until Kubernetes removes them.
func (w *world) remove(obj client.Object) {
	if _, record := obj.(*corev1.ConfigMap); record {
		delete(w.objects, keyOf(obj))
		return
	}
	if obj.GetDeletionTimestamp() == nil {
		change(w, obj, func(obj client.Object) { obj.SetDeletionTimestamp(&deleted) })
	}
}

// partial is the content of a disk while it is overwritten.
const partial = "partial"

// errStream is the error of a script whose Pod does not run, or whose member is away.
var errStream = errors.New("the stream ended")

// shell runs the scripts of a run.
type shell struct{ *host }

// disk returns the name of the disk that a running Pod mounts.
func (s shell) disk(pod string) (string, error) {
	p := get[*corev1.Pod](s.w, pods, pod)
	if p == nil || p.Status.Phase != corev1.PodRunning {
		return "", errStream
	}
	claim := s.w.claim(p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
	if claim == nil {
		return "", errStream
	}
	d, there := s.w.disks[claim.Spec.VolumeName]
	if !there || d.destroyed || !s.w.connected(d.in) {
		return "", errStream
	}
	return claim.Spec.VolumeName, nil
}

// Copy overwrites a disk in two steps.
func (s shell) Copy(_ context.Context, source, target transfer.End, _ transfer.Content, _ func(int)) error {
	for _, last := range []bool{false, true} {
		if err := s.copy(source.Pod, target.Pod, last); err != nil {
			return err
		}
	}
	return nil
}

func (s shell) copy(source, target string, last bool) error {
	defer s.lock()()
	if err := s.begin(true); err != nil {
		return err
	}
	read, err := s.disk(source)
	if err != nil {
		return err
	}
	write, err := s.disk(target)
	if err != nil {
		return err
	}
	d := s.w.disks[write]
	d.content = partial
	if last {
		d.content = s.w.disks[read].content
	}
	s.w.disks[write] = d
	return s.end()
}

func (s shell) Sum(_ context.Context, pod string, _ transfer.Content) (string, error) {
	defer s.lock()()
	if err := s.begin(true); err != nil {
		return "", err
	}
	name, err := s.disk(pod)
	if err != nil {
		return "", err
	}
	return "sum of " + strings.TrimSpace(s.w.disks[name].content), nil
}

func (s shell) UsedBytes(_ context.Context, pod string) (int64, error) {
	defer s.lock()()
	if err := s.begin(true); err != nil {
		return 0, err
	}
	_, err := s.disk(pod)
	return 1, err
}

func (s shell) DeviceBytes(ctx context.Context, pod string) (int64, error) {
	return s.UsedBytes(ctx, pod)
}
