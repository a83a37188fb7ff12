package rootpvc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/states"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// reads serves live reads of one claim.
type reads struct {
	client.Reader
	claim *corev1.PersistentVolumeClaim
	err   error
}

func (r reads) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if claim, ok := into.(*corev1.PersistentVolumeClaim); ok && r.claim != nil && r.err == nil {
		r.claim.DeepCopyInto(claim)
		return nil
	}
	if r.err != nil {
		return r.err
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

var errWrite = errors.New("a write was attempted")

// writes rejects every write, so that tests detect the attempt.
type writes struct{ client.Client }

func (writes) Create(context.Context, client.Object, ...client.CreateOption) error { return errWrite }

func (writes) Delete(context.Context, client.Object, ...client.DeleteOption) error { return errWrite }

func (writes) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errWrite
}

// A leaf claim is created only where the root is placed at that moment. A cache filled by a
// lagging API server may show an earlier placement (I3).
func TestPlacementIsLive(t *testing.T) {
	down := errors.New("connection refused")
	m := mirror.Member{Registration: "cluster38", ClusterID: "3f0c", HostID: "h0"}
	for name, tc := range map[string]struct {
		change func(*reads)
		want   error
	}{
		"placed here":                      {func(*reads) {}, errWrite},
		"placed elsewhere in the meantime": {func(r *reads) { r.claim.Annotations[v1alpha1.AnnotationPlacedIn] = "77aa" }, nil},
		"no longer placed":                 {func(r *reads) { delete(r.claim.Annotations, v1alpha1.AnnotationPlacedIn) }, nil},
		"re-created":                       {func(r *reads) { r.claim.UID = "newer" }, nil},
		"gone":                             {func(r *reads) { r.claim = nil }, nil},
		"the host does not respond":        {func(r *reads) { r.err = down }, down},
	} {
		t.Run(name, func(t *testing.T) {
			root := &corev1.PersistentVolumeClaim{}
			root.Namespace, root.Name, root.UID = "team", "data", types.UID("root")
			root.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: m.ClusterID}
			s := &volume.Observed{Member: m, Root: root, Class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}},
				Placement: &volume.Placement{MemberObjects: placement.MemberObjects{Classes: []string{"fast"}}}}
			live := &reads{claim: root.DeepCopy()}
			tc.change(live)
			r := newReconciler(&member.Link{
				Member: m, HostLive: live, MemberWriter: guarded.NewMemberWriter(writes{}, m.HostID, m.Registration, guarded.HostOnlyGuard{}),
			}, Options{Mirrors: account.NewMirrorTracker(reads{}, noVolumes{})})
			if err := r.executeStep(t.Context(), observe.Claim{Root: root, Observed: s}, step(lifecycle.CreateClaim)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

// exists rejects every creation with AlreadyExists.
type exists struct{ writes }

func (exists) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	return apierrors.NewAlreadyExists(schema.GroupResource{}, obj.GetName())
}

// A leaf claim may be deleted before the cache observes it. No event would then enqueue the root,
// which would wait forever.
func TestLeafClaimNotSeenYet(t *testing.T) {
	root := &corev1.PersistentVolumeClaim{}
	root.Namespace, root.Name, root.UID = "team", "data", types.UID("root")
	root.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}
	s := &volume.Observed{Member: here, Root: root, Class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}},
		Placement: &volume.Placement{MemberObjects: placement.MemberObjects{Classes: []string{"fast"}}}}
	leaf, refusal := volume.LeafClaim(s)
	if refusal != nil {
		t.Fatal(refusal)
	}
	r := newReconciler(&member.Link{
		Member: here, HostLive: reads{claim: root}, Live: reads{claim: leaf}, MemberWriter: guarded.NewMemberWriter(exists{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
	}, Options{Mirrors: account.NewMirrorTracker(reads{}, noVolumes{})})
	settled := guarded.WrapReconciler(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, r.executeStep(ctx, observe.Claim{Root: root, Observed: s}, step(lifecycle.CreateClaim))
	}))
	if result, err := settled.Reconcile(t.Context(), reconcile.Request{}); err != nil || result.RequeueAfter == 0 {
		t.Errorf("result is %v, error %v, want a retry without an error", result, err)
	}
}

// As soon as a claim's node is selected, the PV controller writes to the claim. If Xylem wrote at
// the same time, one of the two writes would be rejected.
func TestPlacementFollowsTheRequest(t *testing.T) {
	r := newReconciler(&member.Link{
		Member: here, Clock: clock.RealClock{}, HostWriter: guarded.NewHostWriter(writes{}, here.Registration, guarded.HostOnlyGuard{}),
	}, Options{Backlog: backlog.New(clock.RealClock{}, backlog.DefaultLimit)})
	place := func(o observe.Claim) bool {
		return errors.Is(r.executeStep(t.Context(), o, step(lifecycle.Place)), errWrite)
	}
	fresh := seen(placedIn(""))
	if place(fresh) || r.reports.TakeRequeueDelay(fresh.Root.UID) != VolumeRequestWait {
		t.Error("placed before the volume was requested")
	}
	if !place(fresh) {
		t.Error("waited twice for a controller that does not respond")
	}
	fresh.Root.ResourceVersion = "2"
	if place(fresh) {
		t.Error("did not wait again after the claim changed")
	}
	fresh.Root.Annotations[volumehelpers.AnnStorageProvisioner] = v1alpha1.ProvisionerName
	if !place(fresh) {
		t.Error("not placed once the volume is requested")
	}
}

// A claim that is older than the host's last restore may have a leaf claim whose record the host
// has lost. It is placed only if every other member is proven to have no leaf claim for it (I3).
func TestPlaceUnlessElsewhere(t *testing.T) {
	down := errors.New("connection refused")
	aged := func(o *scene) { o.root.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) }
	restored := func(o *scene) {
		aged(o)
		o.restores.Host = now.Time
	}
	leafIn := func(r reads) []proof.OtherMember {
		return []proof.OtherMember{{Registration: "cluster39", Live: r, CheckUnrestored: func(context.Context) error { return nil }}}
	}
	leaf := seen(pushed).Leaf
	for name, tc := range map[string]struct {
		o      observe.Claim
		others []proof.OtherMember
		err    error
		// restores contains what is known when the claim is placed. By default, this is the restore in o.
		restores fencing.RestoreTimes
		// asked means that the other members are listed. in contains the members that have the leaf
		// claim, and unasked those that could not be read. Both prevent the placement.
		asked       bool
		in, unasked []string
		want        error
	}{
		"the host was not restored":                             {o: seen(placedIn(""), asked), others: leafIn(reads{claim: leaf}), want: errWrite},
		"the claim is younger than the restore":                 {o: seen(placedIn(""), asked, restored, func(o *scene) { o.root.CreationTimestamp = metav1.NewTime(now.Add(time.Hour)) }), others: leafIn(reads{claim: leaf}), want: errWrite},
		"the leaf claim is in this member":                      {o: seen(placedIn(""), asked, restored, pushed), others: leafIn(reads{claim: leaf}), want: errWrite},
		"another member may still detect a restore":             {o: seen(placedIn(""), asked, aged), restores: fencing.RestoreTimes{HostUnknownUntil: now.Time}, others: leafIn(reads{}), want: errMembersUnknown},
		"a younger claim, and a restore may be detected":        {o: seen(placedIn(""), asked, aged), restores: fencing.RestoreTimes{HostUnknownUntil: now.Add(-time.Hour)}, others: leafIn(reads{}), want: errWrite},
		"the leaf claim is here, and a restore may be detected": {o: seen(placedIn(""), asked, aged, pushed), restores: fencing.RestoreTimes{HostUnknownUntil: now.Time}, want: errWrite},
		"there is no other member":                              {o: seen(placedIn(""), asked, restored), asked: true, want: errWrite},
		"the other member has no leaf claim":                    {o: seen(placedIn(""), asked, restored), others: leafIn(reads{}), asked: true, want: errWrite},
		"only another member has detected the restore":          {o: seen(placedIn(""), asked, aged), restores: fencing.RestoreTimes{HostAnywhere: now.Time}, others: leafIn(reads{claim: leaf}), asked: true, in: []string{"cluster39"}},
		"the other member has its leaf claim":                   {o: seen(placedIn(""), asked, restored), others: leafIn(reads{claim: leaf}), asked: true, in: []string{"cluster39"}},
		"the other member does not respond":                     {o: seen(placedIn(""), asked, restored), others: leafIn(reads{err: down}), asked: true, unasked: []string{"cluster39"}},
		"the other member has no Link":                          {o: seen(placedIn(""), asked, restored), others: []proof.OtherMember{{Registration: "cluster39"}}, asked: true, unasked: []string{"cluster39"}},
		"the other members cannot be listed":                    {o: seen(placedIn(""), asked, restored), err: down, asked: true, want: down},
		"a promise whose leaf claim is in the other member":     {o: promised(withPods("a"), restored, placedIn("")), others: leafIn(reads{claim: leaf}), asked: true, in: []string{"cluster39"}},
		"a promise that has no leaf claim in the other member":  {o: promised(withPods("a"), restored, placedIn("")), others: leafIn(reads{}), asked: true, want: errWrite},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(now.Time)
			told, nothing, wasAsked := events.NewFakeRecorder(10), empty{reader: reads{}}, false
			r := newReconciler(&member.Link{
				Member: here, Host: nothing, HostLive: reads{claim: tc.o.Root}, Cache: nothing, Clock: clock, Recorder: told,
				HostWriter: guarded.NewHostWriter(host{writes{}, &statuses{}}, here.Registration, guarded.HostOnlyGuard{}),
			}, Options{Backlog: backlog.New(clock, backlog.DefaultLimit), OtherMembers: func(_ context.Context, self mirror.Member) ([]proof.OtherMember, error) {
				wasAsked = self.ClusterID == here.ClusterID
				return tc.others, tc.err
			}})
			if tc.restores == (fencing.RestoreTimes{}) {
				tc.restores.Host = tc.o.Observed.Placement.HostRestored
			}
			r.RestoreTimes = func() fencing.RestoreTimes { return tc.restores }
			if err := r.executePlan(t.Context(), tc.o, step(lifecycle.Place)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
			if wasAsked != tc.asked {
				t.Errorf("the other members were listed: %t, want %t", wasAsked, tc.asked)
			}
			if diff := cmp.Diff(proof.Counterparts{Found: tc.in, Unchecked: tc.unasked}, tc.o.Observed.Placement.Counterparts); diff != "" {
				t.Errorf("counterparts (-want +got):\n%s", diff)
			}
			kept := len(tc.in)+len(tc.unasked) > 0
			if reported := len(told.Events) == 1 && strings.Contains(<-told.Events, v1alpha1.ReasonPlacementUnconfirmed); reported != kept {
				t.Errorf("the claim reports %s: %t, want %t", v1alpha1.ReasonPlacementUnconfirmed, reported, kept)
			}
		})
	}
}

// A claim that requests a volume by name is placed only when it is known which other members have a volume
// with that name (I8). A member that is lost, or whose inventory fails, does not delay it (I7).
func TestRivalsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		restores fencing.RestoreTimes
		others   []v1alpha1.ClusterRegistration
		in       func(*account.OrphanTracker)
		later    time.Duration
		err      error
		want     bool
	}{
		"there is no other member":         {want: true},
		"not all fences have been read":    {restores: fencing.RestoreTimes{HostUnknownUntil: now.Time}},
		"a member has no inventory yet":    {others: registrations(metav1.ConditionTrue)},
		"a member has an inventory":        {others: registrations(metav1.ConditionTrue), in: func(b *account.OrphanTracker) { b.RecordInventory("cluster39", nil) }, want: true},
		"a member's inventory fails":       {others: registrations(metav1.ConditionTrue), in: func(b *account.OrphanTracker) { b.RecordInventoryFailure("cluster39", "forbidden", now.Time) }, want: true},
		"a member's inventory takes long":  {others: registrations(metav1.ConditionTrue), later: fencing.MaxFenceReadWait, want: true},
		"a member is not connected":        {others: registrations(metav1.ConditionFalse), want: true},
		"the registrations cannot be read": {err: errWrite},
	} {
		t.Run(name, func(t *testing.T) {
			book, clock := account.NewOrphanTracker(), clocktesting.NewFakeClock(now.Time)
			if tc.in != nil {
				tc.in(book)
			}
			r := newReconciler(&member.Link{
				Member: here, Clock: clock, Host: registry{registrations: tc.others, err: tc.err}, RestoreTimes: func() fencing.RestoreTimes { return tc.restores },
			}, Options{Options: observe.Options{Orphans: book}})
			r.linkStarted = clock.Now()
			clock.Step(tc.later)
			if got, err := r.rivalVolumesKnown(t.Context()); got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %t, %v, want %t, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

// An observation may be older than the inventory that found another member's volume (I8).
func TestPlaceUnlessRival(t *testing.T) {
	s := sceneOf(comesBack, placedIn(""))
	o := s.observe()
	plan := planForClaim(o)
	if plan.Step != lifecycle.Place {
		t.Fatalf("without a rival, the step is %s", plan.Step)
	}
	clock, told, nothing, book := clocktesting.NewFakeClock(now.Time), events.NewFakeRecorder(10), empty{reader: reads{}}, account.NewOrphanTracker()
	gate := backlog.New(clock, backlog.DefaultLimit)
	r := newReconciler(&member.Link{
		Member: here, Host: registry{Reader: nothing}, HostLive: reads{claim: o.Root}, Cache: nothing, Clock: clock, Recorder: told,
		HostWriter: guarded.NewHostWriter(host{writes{}, &statuses{}}, here.Registration, guarded.HostOnlyGuard{}), RestoreTimes: func() fencing.RestoreTimes { return fencing.RestoreTimes{} },
	}, Options{Backlog: gate, Options: observe.Options{Orphans: book}})
	book.RecordInventory("cluster39", []account.Orphan{{Volume: s.asked.Name, Root: client.ObjectKeyFromObject(o.Root), Reason: account.RootGone}})
	if err := r.executePlan(t.Context(), o, plan); err != nil {
		t.Errorf("take() = %v", err)
	}
	if len(told.Events) != 1 || !strings.Contains(<-told.Events, v1alpha1.ReasonAmbiguousVolume) {
		t.Errorf("the claim does not report %s", v1alpha1.ReasonAmbiguousVolume)
	}
}

// registrations returns this member's registration, and that of another member with a connection.
func registrations(connected metav1.ConditionStatus) []v1alpha1.ClusterRegistration {
	all := []v1alpha1.ClusterRegistration{{ObjectMeta: metav1.ObjectMeta{Name: here.Registration}}, {ObjectMeta: metav1.ObjectMeta{Name: "cluster39"}}}
	for i, status := range []metav1.ConditionStatus{metav1.ConditionTrue, connected} {
		all[i].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConnected, Status: status, Reason: v1alpha1.ReasonConnected}}
	}
	return all
}

// registry is a reader of the host that has only registrations.
type registry struct {
	client.Reader
	registrations []v1alpha1.ClusterRegistration
	err           error
}

func (r registry) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*v1alpha1.ClusterRegistrationList).Items = r.registrations
	return r.err
}

// noVolumes is a reader without PVs.
type noVolumes struct{ client.Reader }

func (noVolumes) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// A restored host may have an outdated record that a claim is placed here. Before the leaf claim is
// created, every other member is proven to have none, or the record is removed (I3).
func TestCreateUnlessElsewhere(t *testing.T) {
	restored := func(o *scene) {
		o.root.CreationTimestamp, o.restores.Host = metav1.NewTime(now.Add(-time.Hour)), now.Time
	}
	leaf := seen(pushed).Leaf
	for name, tc := range map[string]struct {
		change []func(*scene)
		others []proof.OtherMember
		want   states.Step
	}{
		"the host was not restored":          {others: []proof.OtherMember{{Registration: "cluster39", Live: reads{claim: leaf}}}, want: lifecycle.CreateClaim},
		"the other member has no leaf claim": {change: []func(*scene){restored}, others: []proof.OtherMember{{Live: reads{}, CheckUnrestored: func(context.Context) error { return nil }}}, want: lifecycle.CreateClaim},
		"the other member has a leaf claim":  {change: []func(*scene){restored}, others: []proof.OtherMember{{Registration: "cluster39", Live: reads{claim: leaf}}}, want: lifecycle.Unplace},
		"the other member is not linked":     {change: []func(*scene){restored}, others: []proof.OtherMember{{Registration: "cluster39"}}, want: lifecycle.Unplace},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneOf(append([]func(*scene){asked}, tc.change...)...)
			o := s.observe()
			r, host, _, _ := proving(o)
			host.claim = s.root.DeepCopy()
			r.RestoreTimes = func() fencing.RestoreTimes { return s.restores }
			r.OtherMembers = func(context.Context, mirror.Member) ([]proof.OtherMember, error) { return tc.others, nil }
			r.Mirrors, r.Backlog = account.NewMirrorTracker(host, host), backlog.New(clocktesting.NewFakeClock(now.Time), backlog.DefaultLimit)
			if plan := planForClaim(o); plan.Step != lifecycle.CreateClaim {
				t.Fatalf("without a look at the other members, the step is %s", plan.Step)
			}
			if err := r.executePlan(t.Context(), o, step(lifecycle.CreateClaim)); !errors.Is(err, errWrite) {
				t.Errorf("error is %v, want %v", err, errWrite)
			}
			if plan := planForClaim(o); plan.Step != tc.want {
				t.Errorf("the step is %s, want %s", plan.Step, tc.want)
			}
		})
	}
}

// onlyMeta records patches of metadata, and rejects those of specs.
type onlyMeta struct {
	writes
	made []string
}

func (p *onlyMeta) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(obj)
	if err != nil || strings.Contains(string(data), `"spec"`) {
		return errors.Join(errWrite, err)
	}
	p.made = append(p.made, string(data))
	return nil
}

// Labels that a user adds later do not wait for a change that the member rejects.
func TestLabelsPassBeforeOtherChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		label  string
		step   lifecycle.Step
		passes bool
		want   error
	}{
		"an expansion, and a new label":             {label: "gold", step: lifecycle.Grow, passes: true},
		"an expansion only":                         {step: lifecycle.Grow, want: errWrite},
		"another attributes class, and a new label": {label: "gold", step: lifecycle.Modify, passes: true},
		"another attributes class only":             {step: lifecycle.Modify, want: errWrite},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(leafBound, bound, grown("2Gi"))
			o.Leaf.Spec.VolumeAttributesClassName = orNil("m-gold")
			pvc.ClaimMetaDriftOf(o.Root, o.Leaf, here).ApplyToMeta(&o.Leaf.ObjectMeta) // what is passed already
			if tc.label != "" {
				metav1.SetMetaDataLabel(&o.Root.ObjectMeta, "tier", tc.label)
			}
			p := &onlyMeta{}
			r := newReconciler(&member.Link{
				Member: here, Clock: clock.RealClock{}, Recorder: events.NewFakeRecorder(10), MemberWriter: guarded.NewMemberWriter(p, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}, Options{})
			if err := r.executeStep(t.Context(), o, step(tc.step)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
			if passed := len(p.made) == 1 && strings.Contains(p.made[0], tc.label); passed != tc.passes {
				t.Errorf("patches are %v", p.made)
			}
		})
	}
}
