package rootpod

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/refs"
)

// reads is a client.Reader that returns one Pod, claim, PV and Node, and their namespace.
type reads struct {
	client.Reader
	namespace types.UID // defaults to the UID in copies
	node      *corev1.Node
	pod       *corev1.Pod
	claim     *corev1.PersistentVolumeClaim
	volume    *corev1.PersistentVolume
	err       error
}

func (r reads) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.Namespace:
		into.Name, into.UID = key.Name, cmp.Or(r.namespace, copies.NamespaceUID)
		return r.err
	case *corev1.Node:
		if r.node != nil && r.node.Name == key.Name {
			r.node.DeepCopyInto(into)
			return r.err
		}
	case *corev1.Pod:
		if r.pod != nil {
			r.pod.DeepCopyInto(into)
			return r.err
		}
	case *corev1.PersistentVolumeClaim:
		if r.claim != nil {
			r.claim.DeepCopyInto(into)
			return r.err
		}
	case *corev1.PersistentVolume:
		if r.volume != nil {
			r.volume.DeepCopyInto(into)
			return r.err
		}
	}
	if r.err != nil {
		return r.err
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

var errWrite = errors.New("attempted write")

// writes rejects every write with errWrite, so that tests notice an attempt.
type writes struct{ client.Client }

func (writes) Delete(context.Context, client.Object, ...client.DeleteOption) error { return errWrite }

func (writes) Create(context.Context, client.Object, ...client.CreateOption) error { return errWrite }

// An early leaf is withdrawn only if live reads confirm the decision: the cache may have been
// filled from a stale server.
func TestWithdrawalIsLive(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		change func(*reads)
		want   error
	}{
		"the claim exists":                                 {func(*reads) {}, nil},
		"the claim is gone":                                {func(r *reads) { r.claim = nil }, errWrite},
		"the scheduler removed its selection":              {func(r *reads) { r.claim.Annotations = nil }, errWrite},
		"the Pod was bound to this member in the meantime": {func(r *reads) { r.pod.Spec.NodeName = here.NodeName; r.claim = nil }, nil},
		"the Pod was bound elsewhere": {func(r *reads) {
			r.node = virtualNode()
			r.node.Name, r.node.Labels[v1alpha1.LabelClusterID] = there.NodeName, there.ClusterID
			r.pod.Spec.NodeName = there.NodeName
		}, errWrite},
		"the Pod is being deleted":               {func(r *reads) { r.pod.DeletionTimestamp = &metav1.Time{}; r.claim = nil }, nil},
		"the Pod was re-created":                 {func(r *reads) { r.pod.UID = "newer"; r.claim = nil }, nil},
		"the host's API server does not respond": {func(r *reads) { r.err = down }, down},
		"the host lacks the Pod":                 {func(r *reads) { r.pod, r.claim = nil, nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(running)
			live := &reads{pod: o.Root.DeepCopy(), claim: o.Claims[0].Root.DeepCopy()}
			tc.change(live)
			o.Claims[0].Root = nil // as in the stale cache
			d, removal := lifecycle.NextDecision(o).(lifecycle.RemoveLeaf)
			if !removal {
				t.Fatalf("decision is %T, want remove", lifecycle.NextDecision(o))
			}
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: live, Recorder: events.NewFakeRecorder(1),
				MemberWriter: guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}}
			if err := r.executeDecision(t.Context(), o, d); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

// After a host restore, a missing root proves nothing, because its Pod may still be running. A
// restored member may again run Pods whose roots are gone, alongside their replacements.
func TestRemovalAfterARestore(t *testing.T) {
	for name, tc := range map[string]struct {
		suspended error
		restores  fencing.RestoreTimes
		want      error
	}{
		"nothing was restored":    {want: errWrite},
		"the host was restored":   {guarded.ErrSuspended, fencing.RestoreTimes{HostUnconfirmed: true}, guarded.ErrSuspended},
		"the member was restored": {guarded.ErrSuspended, fencing.RestoreTimes{Member: now.Time}, errWrite},
		"the host was restored, and an admin confirmed the restore": {nil, fencing.RestoreTimes{Host: now.Time}, errWrite},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(running, func(o *lifecycle.Observed) { o.Root = nil })
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: &reads{}, CheckNotSuspended: func() error { return tc.suspended }, RestoreTimes: func() fencing.RestoreTimes { return tc.restores },
				MemberWriter: guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}}
			if err := r.executeDecision(t.Context(), o, lifecycle.NextDecision(o)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

// A leaf is created only if a live read of the root confirms it. In a stale cache, a Pod that ran
// may look as if it had never been pushed.
func TestCreationIsLive(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		change func(*reads)
		want   error
	}{
		"the Pod has not run":                                      {func(*reads) {}, errWrite},
		"the Pod ran and is marked as pushed":                      {func(r *reads) { r.pod = seen(onNode, pushed(here, corev1.ConditionTrue)).Root }, nil},
		"the Pod has failed":                                       {func(r *reads) { r.pod = seen(onNode, phase(corev1.PodFailed)).Root }, nil},
		"the Pod is being deleted":                                 {func(r *reads) { r.pod.DeletionTimestamp = &metav1.Time{} }, nil},
		"the Pod is gone":                                          {func(r *reads) { r.pod = nil }, nil},
		"the Pod was re-created":                                   {func(r *reads) { r.pod.UID = "newer" }, nil},
		"the namespace of a Pod without references was re-created": {func(r *reads) { r.namespace = "newer-uid" }, errWrite},
		"the Pod's namespace was re-created": {func(r *reads) {
			r.namespace = "newer-uid"
			r.pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}}}}
		}, nil},
		"the Pod is bound to another node":       {func(r *reads) { r.pod.Spec.NodeName = there.NodeName }, nil},
		"the host's API server does not respond": {func(r *reads) { r.err = down }, down},
		"the Pod was withdrawn in the meantime":  {func(r *reads) { r.pod = seen(onNode, pushed(here, corev1.ConditionFalse)).Root }, errWrite},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(onNode) // as in the stale cache: bound, but not marked as pushed
			o.Claims[0].Leaf.Spec.VolumeName = "pv-data"
			d, creation := lifecycle.NextDecision(o).(lifecycle.CreateLeaf)
			if !creation {
				t.Fatalf("decision is %T, want create", lifecycle.NextDecision(o))
			}
			live := &reads{pod: o.Root.DeepCopy()}
			tc.change(live)
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: live, Recorder: events.NewFakeRecorder(1),
				MemberWriter: guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}}
			if err := r.executeDecision(t.Context(), o, d); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

// The leaf of a finished root is removed only if live reads of both clusters confirm the decision.
func TestRemovalOfAFinishedRootsLeafIsLive(t *testing.T) {
	for name, tc := range map[string]struct {
		host, member func(*reads)
		want         error
	}{
		"the leaf is still running":             {func(*reads) {}, func(*reads) {}, errWrite},
		"the leaf has finished":                 {func(*reads) {}, func(r *reads) { r.pod.Status.Phase = corev1.PodSucceeded }, nil},
		"the leaf is gone":                      {func(*reads) {}, func(r *reads) { r.pod = nil }, nil},
		"the leaf was re-created":               {func(*reads) {}, func(r *reads) { r.pod.UID = "newer" }, nil},
		"the root has not finished":             {func(r *reads) { r.pod.Status.Phase = corev1.PodRunning }, func(*reads) {}, nil},
		"the root was replaced in the meantime": {func(r *reads) { r.pod.UID = "newer" }, func(*reads) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(onNode, running, pushed(here, corev1.ConditionTrue), phase(corev1.PodFailed))
			d, removal := lifecycle.NextDecision(o).(lifecycle.RemoveLeaf)
			if !removal {
				t.Fatalf("decision is %T, want remove", lifecycle.NextDecision(o))
			}
			host, live := &reads{pod: o.Root.DeepCopy(), claim: o.Claims[0].Root, volume: o.Claims[0].Volume}, &reads{pod: o.Leaf.DeepCopy()}
			tc.host(host)
			tc.member(live)
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: host, Live: live, Recorder: events.NewFakeRecorder(1),
				MemberWriter: guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}}
			if err := r.executeDecision(t.Context(), o, d); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

// listed is a cache whose Get returns the given objects, and whose lists are empty.
type listed struct {
	cache.Cache
	objects []client.Object
}

func (l listed) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, obj := range l.objects {
		if client.ObjectKeyFromObject(obj) != key || reflect.TypeOf(obj) != reflect.TypeOf(into) {
			continue
		}
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj).Elem())
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (listed) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// A leaf stays if its root is bound to a node that is not in the cache yet. No event of that node
// or of the Pod reaches this member's controller, so it returns an error to retry.
func TestNodeIsAwaited(t *testing.T) {
	for name, tc := range map[string]struct {
		boundTo string
		knows   *corev1.Node
		fails   bool
	}{
		"the root is not bound yet":                                {},
		"the root is bound here":                                   {boundTo: here.NodeName},
		"the root is bound to a host node":                         {boundTo: "worker-1", knows: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}},
		"the root is bound to a node that is not in the cache yet": {boundTo: "worker-1", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(running, on(tc.boundTo))
			o.Root.Spec.Volumes = nil
			host := listed{objects: []client.Object{o.Root, virtualNode()}}
			if tc.knows != nil {
				host.objects = append(host.objects, tc.knows)
			}
			leaf := o.Leaf.DeepCopy()
			o.Origin.StampLeaf(leaf)
			r := &reconciler{Link: &member.Link{Member: here, Host: host, Cache: listed{objects: []client.Object{leaf}}}}
			got, err := r.observePod(t.Context(), client.ObjectKeyFromObject(o.Root))
			if got.Leaf == nil {
				t.Fatal("the leaf was not observed")
			}
			if failed := err != nil; failed != tc.fails {
				t.Errorf("error is %v, want one: %t", err, tc.fails)
			}
		})
	}
}

// An object in the member that is not a copy is ignored, even if it has the name of one.
func TestReferencesObserved(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "password", UID: "password-uid"}
	secret := &corev1.Secret{ObjectMeta: meta}
	token := &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeServiceAccountToken}
	large := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{}}
	for i := range 50_000 {
		large.Data[strconv.Itoa(i)] = nil
	}
	copied, err := refs.TranslateSecret(secret, copies)
	if err != nil {
		t.Fatal(err)
	}
	older, err := refs.TranslateSecret(secret, mirror.ConfigCopies{HostID: here.HostID, NamespaceUID: "older-uid"})
	if err != nil {
		t.Fatal(err)
	}
	former := copied.DeepCopy() // has the root's name, as in earlier versions
	former.Name = secret.Name
	forged := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: copied.Name}}
	for name, tc := range map[string]struct {
		optional     bool
		host, member client.Object
		missing      []string
		lacking      string // reason
	}{
		"the object is copied":                                                        {host: secret, member: copied},
		"the object is not copied yet":                                                {host: secret, missing: []string{`Secret "password"`}},
		"the object is optional, and not copied yet":                                  {optional: true, host: secret, missing: []string{`Secret "password"`}},
		"the copy belongs to an earlier namespace":                                    {host: secret, member: older, missing: []string{`Secret "password"`}},
		"the copy is from an earlier version":                                         {host: secret, member: former, missing: []string{`Secret "password"`}},
		"another object has the copy's name":                                          {host: secret, member: forged, missing: []string{`Secret "password"`}},
		"the host lacks the object":                                                   {lacking: v1alpha1.ReasonReferenceMissing},
		"the host lacks the object, and the member has its own object with that name": {member: secret, lacking: v1alpha1.ReasonReferenceMissing},
		"the object is optional, and the host lacks it":                               {optional: true},
		"the object's type is not copied":                                             {host: token, lacking: v1alpha1.ReasonSecretUnsupported},
		"the object is too large":                                                     {host: large, lacking: v1alpha1.ReasonReferenceTooLarge},
		"the object has become too large after it was copied":                         {host: large, member: copied},
		"the object is optional, and its type is not copied":                          {optional: true, host: token},
	} {
		t.Run(name, func(t *testing.T) {
			o := lifecycle.Observed{Member: here, Root: rootPod(), MemberNamespace: usable()}
			o.Root.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "password"}, Optional: &tc.optional}}}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: copies.NamespaceUID}}
			has := func(objects ...client.Object) listed {
				return listed{objects: slices.DeleteFunc(objects, func(obj client.Object) bool { return obj == nil })}
			}
			r := &reconciler{Link: &member.Link{Member: here, Host: has(namespace), HostLive: has(tc.host), HostSecrets: has(tc.host), Cache: has(tc.member)}}
			if err := r.observeReferences(t.Context(), &o); err != nil {
				t.Fatal(err)
			}
			lacking := ""
			if o.ReferenceProblem != nil {
				lacking = o.ReferenceProblem.Reason
			}
			if !slices.Equal(o.MissingCopies, tc.missing) || lacking != tc.lacking || o.Copies != copies {
				t.Errorf("missing %v, want %v; lacking %q, want %q; copies %v, want %v", o.MissingCopies, tc.missing, lacking, tc.lacking, o.Copies, copies)
			}
		})
	}
}

// usable returns the member's namespace, which Xylem created.
func usable() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{
		v1alpha1.LabelHost: here.HostID, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
	}}}
}

// counting counts the reads of an empty host.
type counting struct {
	client.Reader
	reads *int
}

func (c counting) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	*c.reads++
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// A Pod with many references causes few reads of the host, because other tenants' Pods wait for them.
func TestReferencesReadAreLimited(t *testing.T) {
	many := func(n int, optional bool) []corev1.EnvFromSource {
		var from []corev1.EnvFromSource
		for i := range n {
			from = append(from, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: strconv.Itoa(i)}, Optional: &optional}})
		}
		return from
	}
	required := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "required"}}}
	for name, tc := range map[string]struct {
		from   []corev1.EnvFromSource
		member *corev1.Namespace
		want   int
	}{
		"the host lacks all of them":                         {many(refs.ReferenceLimit, false), usable(), maxNamedObjects},
		"there are too many":                                 {many(refs.ReferenceLimit+1, false), usable(), 0},
		"the host lacks a required one":                      {append(many(refs.ReferenceLimit-1, true), required), usable(), 1},
		"the member's namespace does not accept the Pod yet": {many(refs.ReferenceLimit, false), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := lifecycle.Observed{Member: here, Root: rootPod(), MemberNamespace: tc.member}
			o.Root.Spec.Containers[0].EnvFrom = tc.from
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: copies.NamespaceUID}}
			reads := 0
			r := &reconciler{Link: &member.Link{Member: here, Host: listed{objects: []client.Object{namespace}}, HostLive: counting{reads: &reads}, HostSecrets: counting{reads: &reads}, Cache: listed{}}}
			if err := r.observeReferences(t.Context(), &o); err != nil || reads != tc.want {
				t.Errorf("%d reads, error %v; want %d reads", reads, err, tc.want)
			}
		})
	}
}

// Live reads determine whether a claim was bound in the member, whether or not its leaf claim remains.
func TestBoundObserved(t *testing.T) {
	unbound := asked("data", here)
	down := errors.New("connection refused")
	elsewhere := bound("data", there)
	another := bound("data", here)
	another.Volume.Spec.ClaimRef.UID = "another"
	leafBound := asked("data", here).Leaf
	leafBound.Spec.VolumeName = "pvc-leaf"
	for name, tc := range map[string]struct {
		root, leaf *corev1.PersistentVolumeClaim
		volume     *corev1.PersistentVolume
		err        error
		want       bool
	}{
		"the claim has no volume, and none is about to be bound to it": {root: unbound.Root},
		"the leaf claim is not bound":                                  {root: unbound.Root, leaf: unbound.Leaf},
		"the leaf claim is bound":                                      {root: unbound.Root, leaf: leafBound, want: true},
		"a leaf claim of an earlier root is bound": {root: unbound.Root, leaf: func() *corev1.PersistentVolumeClaim {
			earlier := leafBound.DeepCopy()
			mirror.Origin{HostID: here.HostID, Root: types.NamespacedName{Namespace: "shop", Name: "data"}, UID: "earlier"}.StampLeaf(earlier)
			return earlier
		}()},
		"a volume of this member is about to be bound to the claim": {root: unbound.Root, volume: bound("data", here).Volume, want: true},
		"the claim is bound to a volume of this member":             {root: bound("data", here).Root, volume: bound("data", here).Volume, want: true},
		"the leaf claim was created again":                          {root: unbound.Root, leaf: unbound.Leaf, volume: bound("data", here).Volume, want: true},
		"the claim's volume is in another member":                   {root: elsewhere.Root, volume: elsewhere.Volume},
		"the volume belongs to another claim":                       {root: another.Root, volume: another.Volume},
		"the host's API server does not respond":                    {root: bound("data", here).Root, err: down},
	} {
		t.Run(name, func(t *testing.T) {
			live := volumes{reads{volume: tc.volume, err: tc.err}}
			r := &reconciler{Link: &member.Link{Member: here, HostLive: live, Live: &reads{claim: tc.leaf}}, Options: Options{Mirrors: account.NewMirrorTracker(&reads{}, live)}}
			o := lifecycle.Observed{Claims: []lifecycle.Claim{{Name: "data", Root: tc.root}}}
			if err := r.observeClaimsBoundHere(t.Context(), &o); !errors.Is(err, tc.err) || o.Claims[0].BoundHere != tc.want {
				t.Errorf("bound here is %t, %v; want %t, %v", o.Claims[0].BoundHere, err, tc.want, tc.err)
			}
		})
	}
}

// volumes extends reads with a list of PVs, which contains only the one PV.
type volumes struct{ reads }

func (v volumes) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if pvs, ok := list.(*corev1.PersistentVolumeList); ok && v.volume != nil {
		pvs.Items = []corev1.PersistentVolume{*v.volume}
	}
	return v.err
}

// statuses rejects every write of a status with errWrite, so that tests notice an attempt.
type statuses struct{ client.Client }

func (statuses) Status() client.SubResourceWriter { return noStatus{} }

type noStatus struct{ client.SubResourceWriter }

func (noStatus) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errWrite
}

// truth is what both clusters have: a fact of each kind that a decision about a mark depends on.
type truth struct{ root, leaf, claim, volume string }

// observation returns what root_pod would observe if no cache lagged.
func (w truth) observation() lifecycle.Observed {
	roots := map[string][]func(*lifecycle.Observed){
		"never pushed": nil,
		"pushed":       {pushed(here, corev1.ConditionTrue)},
		"withdrawn":    {pushed(here, corev1.ConditionFalse)},
		"bound":        {on(here.NodeName), pushed(here, corev1.ConditionTrue)},
		"re-created":   {func(o *lifecycle.Observed) { o.Root.UID = "newer" }},
	}
	o := seen(roots[w.root]...)
	if w.leaf == "exists" {
		running(&o)
	}
	c := &o.Claims[0]
	switch w.claim {
	case "bound":
		c.Leaf.Spec.VolumeName = "pvc-leaf"
	case "gone":
		c.Leaf = nil
	}
	return o
}

// started reports whether the containers of the root's leaf may have started.
func (w truth) started() bool { return w.claim == "bound" || w.volume == "mirrored" }

// reconciler returns a reconciler whose live reads return the truth, and which fails with errWrite when it
// writes.
func (w truth) reconciler() *reconciler {
	o := w.observation()
	host := reads{pod: o.Root, claim: o.Claims[0].Root}
	if w.volume == "mirrored" {
		host.volume = bound("data", here).Volume
	}
	member38 := &reads{claim: o.Claims[0].Leaf}
	if o.Leaf != nil {
		member38.pod = o.Leaf.DeepCopy()
		o.Origin.StampLeaf(member38.pod)
	}
	live := volumes{host}
	return &reconciler{
		Options: Options{Mirrors: account.NewMirrorTracker(&reads{}, live)},
		Link: &member.Link{
			Member: here, HostLive: live, Live: member38, Recorder: events.NewFakeRecorder(10), Clock: clock.RealClock{},
			HostWriter:   guarded.NewHostWriter(statuses{}, here.Registration, guarded.HostOnlyGuard{}),
			MemberWriter: guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
		},
	}
}

// truths returns all combinations of the facts.
func truths() (all []truth) {
	for _, root := range []string{"never pushed", "pushed", "withdrawn", "bound", "re-created"} {
		for _, leaf := range []string{"exists", "gone"} {
			for _, claim := range []string{"unbound", "bound", "gone"} {
				for _, volume := range []string{"none", "mirrored"} {
					all = append(all, truth{root, leaf, claim, volume})
				}
			}
		}
	}
	return all
}

// Caches may lag behind each other and behind both clusters. For each state of the caches, and each
// state of the clusters, a mark on the root is written only if it is true: otherwise, a Pod whose
// containers may have started would run again, on a disk that the first run wrote to.
func TestMarksAreLive(t *testing.T) {
	var withdrawn, recorded, reported int
	for _, cached := range truths() {
		o := cached.observation()
		for _, is := range truths() {
			r := is.reconciler()
			d := lifecycle.NextDecision(o)
			switch d.(type) {
			case lifecycle.MarkWithdrawn:
				if !errors.Is(r.executeDecision(t.Context(), o, d), errWrite) {
					continue
				}
				withdrawn++
				if is.root != "pushed" || is.leaf == "exists" || is.started() {
					t.Errorf("with caches %+v and clusters %+v, the Pod is marked as withdrawn", cached, is)
				}
			case lifecycle.MarkPushed:
				if !errors.Is(r.executeDecision(t.Context(), o, d), errWrite) {
					continue
				}
				recorded++
				if cached.root == "withdrawn" && is.leaf == "gone" {
					t.Errorf("with caches %+v and clusters %+v, a leaf that is gone is recorded", cached, is)
				}
			}
			if cached.root != "never pushed" || !errors.Is(r.reportUnpushed(t.Context(), o.Root, mirror.NewRefusal(v1alpha1.ReasonReferenceMissing, "no")), errWrite) {
				continue
			}
			reported++
			if is.root == "pushed" || is.root == "bound" || is.root == "re-created" {
				t.Errorf("with caches %+v and clusters %+v, a problem replaces the record of a leaf", cached, is)
			}
		}
	}
	if withdrawn == 0 || recorded == 0 || reported == 0 {
		t.Errorf("%d Pods are marked as withdrawn, %d as pushed, and %d with a problem; want some of each", withdrawn, recorded, reported)
	}
}
