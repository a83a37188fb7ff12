package rootpvc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// cluster serves reads of a few objects. Lookups of PVs by an index return indexed.
type cluster struct {
	cache.Cache
	claim   *corev1.PersistentVolumeClaim
	volumes []corev1.PersistentVolume
	indexed []corev1.PersistentVolume
	lists   *int // counts the lists of all PVs, unless it is nil
}

func (c cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.PersistentVolume:
		for i := range c.volumes {
			if c.volumes[i].Name == key.Name {
				c.volumes[i].DeepCopyInto(into)
				return nil
			}
		}
	case *corev1.PersistentVolumeClaim:
		if c.claim != nil {
			c.claim.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c cluster) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	list, ok := into.(*corev1.PersistentVolumeList)
	if !ok {
		return nil
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	list.Items = slices.Clone(c.volumes)
	if o.FieldSelector != nil {
		list.Items = slices.Clone(c.indexed)
	} else if c.lists != nil {
		*c.lists++
	}
	return nil
}

// proving returns a reconciler whose writes fail with errWrite. Live reads of host and member
// return the objects of the given observation.
func proving(o observe.Claim) (r *reconciler, hostLive, leafLive *cluster, told *events.FakeRecorder) {
	hostLive, leafLive, told = &cluster{claim: o.Root}, &cluster{claim: o.Leaf}, events.NewFakeRecorder(10)
	if pv := o.Observed.Placement.ProvisionedVolume; pv != nil {
		leafLive.volumes = []corev1.PersistentVolume{*pv}
	}
	var times fencing.RestoreTimes
	if o.Observed.MayBeRestored {
		times.Member = now.Time
	}
	if o.Observed.RootMayBeLost {
		times.Host = now.Time
	}
	return newReconciler(&member.Link{
		Member: here, Host: &cluster{}, Cache: &cluster{}, HostLive: hostLive, Live: leafLive,
		Clock: clocktesting.NewFakePassiveClock(now.Time), Recorder: told, RestoreTimes: func() fencing.RestoreTimes { return times },
		CheckNotSuspended: func() error { return nil },
		MemberWriter:      guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
		HostWriter:        guarded.NewHostWriter(writes{}, here.Registration, guarded.HostOnlyGuard{}),
	}, Options{}), hostLive, leafLive, told
}

func (c *cluster) add(pv *corev1.PersistentVolume) { c.volumes = append(c.volumes, *pv) }

// asPromise returns a promise that was fulfilled with a leaf PV.
func asPromise(leaf *corev1.PersistentVolume) *corev1.PersistentVolume {
	o := promisedScene()
	return hostpv.FulfillPromise(hostpv.PromiseWithMember(o.promise, here, nil), leaf, corev1.PersistentVolumeReclaimRetain, here)
}

// mirrorOfAnother returns the host PV of the root that represents another volume in a member.
func mirrorOfAnother(o *scene, m mirror.Member, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	earlier := o.leafVolume.DeepCopy()
	earlier.Name, earlier.UID = "pvc-earlier", "earlier-uid"
	return hostpv.TranslateVolume(earlier, o.root, policy, m)
}

// A volume that a host PV represents is not destroyed as if it had never been mirrored, even if the
// member lost objects or the caches lack them (I2).
func TestDestroyUnmirroredIsProven(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(o *scene, host *cluster)
		want   error
		told   string
	}{
		"no host PV has the volume's handle": {want: errWrite},
		"a host PV has the volume's name": {change: func(o *scene, host *cluster) {
			host.add(mirrorFor(o))
		}},
		"a host PV has the volume's name, but records a different UID for the leaf PV": {change: func(o *scene, host *cluster) {
			pv := mirrorFor(o)
			pv.Spec.CSI.VolumeAttributes[v1alpha1.AttributeLeafUID] = "before-the-restore"
			host.add(pv)
		}, told: v1alpha1.ReasonVolumeKept, want: errLeafClaimKept},
		"a host PV has the volume's name with a suffix": {change: func(o *scene, host *cluster) {
			pv := mirrorFor(o)
			pv.Name = hostpv.HostVolumeName(pv.Name, here.ClusterID, true)
			host.add(pv)
		}},
		"a host PV with any other name represents the volume": {change: func(o *scene, host *cluster) {
			pv := mirrorFor(o)
			pv.Name = "restored-by-an-admin"
			host.add(pv)
		}},
		"a promise was fulfilled with the volume": {change: func(o *scene, host *cluster) {
			host.add(asPromise(o.leafVolume))
		}},
		"a host PV has the volume's handle, but its label was edited": {change: func(o *scene, host *cluster) {
			pv := mirrorFor(o)
			pv.Labels[v1alpha1.LabelClusterID] = "edited"
			host.add(pv)
		}, told: v1alpha1.ReasonVolumeKept, want: errLeafClaimKept},
		"a host PV has the volume's name, but represents another member's volume": {change: func(o *scene, host *cluster) {
			other, owner := here, o.root.DeepCopy()
			other.ClusterID, owner.UID = elsewhereID, "another-root"
			pv := hostpv.TranslateVolume(o.leafVolume, owner, corev1.PersistentVolumeReclaimRetain, other)
			host.add(pv)
		}, want: errWrite},
		// A claim has one volume (I3), so somebody restored the leaf claim from a backup, with its stamp,
		// and nobody knows which volume has the newer data.
		"a host PV of the same claim represents another volume": {change: func(o *scene, host *cluster) {
			host.add(mirrorOfAnother(o, here, corev1.PersistentVolumeReclaimRetain))
		}, told: v1alpha1.ReasonVolumeKept, want: errLeafClaimKept},
		"a host PV of the same claim represents another member's volume": {change: func(o *scene, host *cluster) {
			other := here
			other.ClusterID = elsewhereID
			host.add(mirrorOfAnother(o, other, corev1.PersistentVolumeReclaimRetain))
		}, told: v1alpha1.ReasonVolumeKept, want: errLeafClaimKept},
		"a host PV of the same claim represents another volume, and ends with the claim": {change: func(o *scene, host *cluster) {
			pv := mirrorOfAnother(o, here, corev1.PersistentVolumeReclaimDelete)
			pv.Status.Phase = corev1.VolumeReleased
			host.add(pv)
		}, want: errWrite},
		"the member was restored since the claim was created": {change: func(o *scene, _ *cluster) {
			memberRestored(time.Minute)(o)
		}},
		"the host was restored since the claim was created": {change: func(o *scene, _ *cluster) {
			hostRestored(0)(o)
		}},
		"another member may still detect a restore of the host": {change: func(o *scene, _ *cluster) {
			o.restores.HostUnknownUntil = now.Add(time.Second)
		}, want: errMembersUnknown},
		"the claim is younger than this process": {change: func(o *scene, _ *cluster) {
			o.restores.HostUnknownUntil = o.leaf.CreationTimestamp.Time
		}, want: errWrite},
		"the claim is younger than the host's restore": {change: func(o *scene, _ *cluster) {
			hostRestored(-time.Second)(o)
		}, want: errWrite},
		"the claim was created in the same second as the restore": {change: func(o *scene, _ *cluster) {
			memberRestored(0)(o)
		}},
		"the claim is younger than the restore": {change: func(o *scene, _ *cluster) {
			memberRestored(-time.Second)(o)
		}, want: errWrite},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneOf(leafBound)
			var there cluster
			if tc.change != nil {
				tc.change(&s, &there)
			}
			rootGone(&s)
			o := s.observe()
			r, host, _, told := proving(o)
			r.RestoreTimes = func() fencing.RestoreTimes { return s.restores }
			host.volumes = there.volumes
			if err := r.executeStep(t.Context(), o, step(lifecycle.DestroyUnmirrored)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
			heard(t, told, tc.told)
		})
	}
}

// The message of VolumeKept names a remedy that works: host_volume abandons only a PV whose record
// is intact, and only Xylem can correct the record.
func TestVolumeKeptHasRemedy(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolume)
		says   []string
		never  string
	}{
		"the PV's record is intact": {
			change: func(pv *corev1.PersistentVolume) {
				pv.Spec.CSI.VolumeAttributes[v1alpha1.AttributeLeafUID] = "before-the-restore"
			},
			says: []string{"annotate that PersistentVolume with " + v1alpha1.AnnotationAbandon + "=true"}, never: v1alpha1.FinalizerLeafVolume,
		},
		"the PV's label was edited": {
			change: func(pv *corev1.PersistentVolume) { pv.Labels[v1alpha1.LabelClusterID] = "edited" },
			says:   []string{"Xylem does not act on it", "delete PersistentVolume", "remove its finalizer " + v1alpha1.FinalizerLeafVolume}, never: v1alpha1.AnnotationAbandon,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneOf(leafBound)
			pv := mirrorFor(&s)
			tc.change(pv)
			rootGone(&s)
			o := s.observe()
			r, host, _, told := proving(o)
			host.add(pv)
			if err := r.executeStep(t.Context(), o, step(lifecycle.DestroyUnmirrored)); !errors.Is(err, errLeafClaimKept) {
				t.Fatal(err)
			}
			event := <-told.Events
			for _, part := range append(tc.says, v1alpha1.ReasonVolumeKept, pv.Name) {
				if !strings.Contains(event, part) {
					t.Errorf("event %q lacks %q", event, part)
				}
			}
			if strings.Contains(event, tc.never) {
				t.Errorf("event %q contains %q", event, tc.never)
			}
		})
	}
}

// heard checks that an event with the given reason was emitted, or none if the reason is empty.
func heard(t *testing.T, told *events.FakeRecorder, reason string) {
	t.Helper()
	select {
	case event := <-told.Events:
		if reason == "" || !strings.Contains(event, reason) {
			t.Errorf("event %q, want reason %q", event, reason)
		}
	default:
		if reason != "" {
			t.Errorf("no event, want reason %q", reason)
		}
	}
}

// An unbound leaf claim is not withdrawn while its volume, which a host PV represents, exists
// or may appear. A restored member has lost the binding (I2).
func TestWithdrawIsProven(t *testing.T) {
	made := func(o *scene, name string) *corev1.PersistentVolume {
		pv := leafPV()
		pv.Name = name
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: o.leaf.Namespace, Name: o.leaf.Name, UID: o.leaf.UID}
		return pv
	}
	mirrored := func(o *scene, leaf *corev1.PersistentVolume) *corev1.PersistentVolume {
		pv := hostpv.TranslateVolume(leaf, o.root, corev1.PersistentVolumeReclaimRetain, here)
		pv.Spec.ClaimRef.UID = "another-root"
		return pv
	}
	// forRoot adds a host PV for the leaf claim's root to the cache.
	forRoot := func(o *scene, r *reconciler, leaf *corev1.PersistentVolume) *corev1.PersistentVolume {
		pv := mirrored(o, leaf)
		pv.Spec.ClaimRef.UID = o.origin.UID
		r.Host = &cluster{indexed: []corev1.PersistentVolume{*pv}}
		return pv.DeepCopy()
	}
	const provisioned = "pvc-leaf-uid"
	for name, tc := range map[string]struct {
		change func(o *scene, r *reconciler, host, leaf *cluster)
		want   error
		told   string
	}{
		"nothing was provisioned": {want: errWrite},
		"the member is about to bind a volume, and no cluster was restored": {change: func(o *scene, r *reconciler, _, leaf *cluster) {
			leaf.add(made(o, provisioned))
			r.Cache = &cluster{indexed: leaf.volumes}
		}, want: errWrite},
		"the member is about to bind a volume, and the host has a PV for it": {change: func(o *scene, r *reconciler, host, leaf *cluster) {
			leaf.add(made(o, "static"))
			r.Cache = &cluster{indexed: leaf.volumes}
			host.add(mirrored(o, made(o, "static")))
		}, told: v1alpha1.ReasonVolumeKept, want: errLeafClaimKept},
		"the member lacks the volume, its provisioner will re-create it, and the host has a PV for it": {change: func(o *scene, _ *reconciler, host, _ *cluster) {
			host.add(mirrored(o, made(o, provisioned)))
		}, told: v1alpha1.ReasonVolumeKept, want: errLeafClaimKept},
		"the host has a PV for the root, whose volume this member lacks": {change: func(o *scene, r *reconciler, host, _ *cluster) {
			host.add(forRoot(o, r, made(o, "pv-1")))
		}, told: v1alpha1.ReasonVolumeKept, want: errLeafClaimKept},
		"the host has a Released PV for the root, with policy Delete": {change: func(o *scene, r *reconciler, host, _ *cluster) {
			pv := forRoot(o, r, made(o, "pv-1"))
			pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy = corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete
			host.add(pv)
		}, want: errWrite},
		"the host has a PV for the root, and an admin has just set Retain": {change: func(o *scene, r *reconciler, host, _ *cluster) {
			pv := forRoot(o, r, made(o, "pv-1"))
			pv.Status.Phase = corev1.VolumeReleased
			host.add(pv)
		}, told: v1alpha1.ReasonVolumeKept, want: errLeafClaimKept},
		"the host has a PV for the root, whose volume belongs to another leaf claim": {change: func(o *scene, r *reconciler, host, leaf *cluster) {
			other := made(o, "pv-1")
			other.Spec.ClaimRef.UID = "another-leaf"
			leaf.add(other)
			host.add(forRoot(o, r, other))
		}, want: errWrite},
		"the claim may come from the backup, and a volume was provisioned for it": {change: func(o *scene, _ *reconciler, _, leaf *cluster) {
			memberRestored(time.Minute)(o)
			leaf.add(made(o, "static"))
		}},
		"the claim may come from the backup, and a volume is reserved for it by name": {change: func(o *scene, _ *reconciler, _, leaf *cluster) {
			memberRestored(time.Minute)(o)
			pv := made(o, "static")
			pv.Spec.ClaimRef.UID = ""
			leaf.add(pv)
		}},
		"the claim may come from the backup, and nothing was provisioned for it": {change: func(o *scene, _ *reconciler, _, _ *cluster) {
			memberRestored(time.Minute)(o)
		}, want: errWrite},
		"the claim may come from the backup, and the host has a PV with another name": {change: func(o *scene, _ *reconciler, host, _ *cluster) {
			memberRestored(time.Minute)(o)
			pv := mirrored(o, made(o, provisioned))
			pv.Name = "restored-by-an-admin"
			host.add(pv)
		}, told: v1alpha1.ReasonVolumeKept, want: errLeafClaimKept},
		"the claim was placed here in the meantime": {change: func(_ *scene, _ *reconciler, host, _ *cluster) {
			host.claim.Annotations[v1alpha1.AnnotationPlacedIn] = "changed"
		}},
		"the scheduler selected this member in the meantime": {change: func(_ *scene, _ *reconciler, host, _ *cluster) {
			host.claim.Annotations[route.AnnSelectedNode] = here.NodeName
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneOf(pushed, selected(elsewhereNode))
			s.leafClass = classOf(corev1.PersistentVolumeReclaimDelete)
			r, host, leaf, told := proving(s.observe())
			host.claim = s.root.DeepCopy()
			if tc.change != nil {
				tc.change(&s, r, host, leaf)
			}
			o := s.observe()
			r.RestoreTimes = func() fencing.RestoreTimes { return s.restores }
			if err := r.executeStep(t.Context(), o, step(lifecycle.Withdraw)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
			heard(t, told, tc.told)
		})
	}
}

// While destruction is suspended, a leaf claim without a root is left alone. No claim can report
// the suspension, and the reconciler must not panic. settling.WrapReconciler handles the error.
func TestSuspendedWithoutARoot(t *testing.T) {
	for name, o := range map[string]observe.Claim{
		"withdraw": seen(pushed, rootGone), "destroy": seen(leafBound, rootGone), "retained": seen(leafBound, stampedVolume, retainedVolume, rootGone), "lost": seen(leafBound, leafLost, noLeafVolume, rootGone),
	} {
		t.Run(name, func(t *testing.T) {
			o.Observed.Placement.LeafClass = classOf(corev1.PersistentVolumeReclaimDelete)
			r, _, _, told := proving(o)
			r.MemberWriter = guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, suspended{})
			if err := r.executeStep(t.Context(), o, planForClaim(o)); !errors.Is(err, guarded.ErrSuspended) {
				t.Errorf("error is %v, want ErrSuspended", err)
			}
			heard(t, told, "")
		})
	}
}

// In a member that was just restored, absence is not evidence, even before a probe detects the
// restore. The volume may have been mirrored, and abandoned by an admin who keeps its data (I2).
func TestRestoreIsNoticedFirst(t *testing.T) {
	for name, o := range map[string]observe.Claim{
		"withdraw": seen(pushed, selected(elsewhereNode)), "withdraw after the root is gone": seen(pushed, rootGone), "destroy": seen(leafBound, rootGone),
	} {
		t.Run(name, func(t *testing.T) {
			o.Observed.Placement.LeafClass = classOf(corev1.PersistentVolumeReclaimDelete)
			r, _, _, _ := proving(o)
			if err := r.executeStep(t.Context(), o, planForClaim(o)); !errors.Is(err, errWrite) {
				t.Fatalf("error is %v, want an attempted deletion", err)
			}
			r.CheckUnrestored = func(context.Context) error { return guarded.ErrFenced }
			if err := r.executeStep(t.Context(), o, planForClaim(o)); !errors.Is(err, guarded.ErrFenced) {
				t.Errorf("error is %v, want ErrFenced", err)
			}
		})
	}
}

// While destruction is suspended, which may last for days, Xylem does not list all volumes for
// waiting claims.
func TestSuspendedListsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observe.Claim
		lists    int // while destruction is not suspended
	}{
		"withdraw": {seen(pushed, rootGone, memberRestored(time.Minute)), 2},
		"destroy":  {seen(leafBound, rootGone), 1},
		// This deletion destroys no data, and a restore of the member may require many of them.
		"retained": {seen(leafBound, stampedVolume, retainedVolume, rootGone), 0},
		"lost":     {seen(leafBound, leafLost, noLeafVolume, rootGone), 1},
	} {
		t.Run(name, func(t *testing.T) {
			tc.observed.Observed.Placement.LeafClass = classOf(corev1.PersistentVolumeReclaimDelete)
			r, host, leaf, _ := proving(tc.observed)
			lists := 0
			host.lists, leaf.lists = &lists, &lists
			if err := r.executeStep(t.Context(), tc.observed, planForClaim(tc.observed)); !errors.Is(err, errWrite) || lists != tc.lists {
				t.Fatalf("error is %v after %d lists, want an attempted deletion after %d", err, lists, tc.lists)
			}
			lists = 0
			r.CheckNotSuspended = suspended{}.CheckNotSuspended
			if err := r.executeStep(t.Context(), tc.observed, planForClaim(tc.observed)); !errors.Is(err, guarded.ErrSuspended) || lists > 0 {
				t.Errorf("error is %v after %d lists, want ErrSuspended without a list", err, lists)
			}
		})
	}
}

// suspended is a guard that rejects destruction, as after an unconfirmed restore.
type suspended struct{ guarded.HostOnlyGuard }

func (suspended) CheckNotSuspended() error { return guarded.ErrSuspended }

// A new claim with the same name waits for the deletion, and reports that destruction is suspended.
func TestSuspensionIsReportedOnTheNextClaim(t *testing.T) {
	o := seen(leafBound, rootNewer)
	r, _, _, told := proving(o)
	r.MemberWriter = guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, suspended{})
	conditions := &statuses{}
	r.HostWriter = guarded.NewHostWriter(host{writes{}, conditions}, here.Registration, guarded.HostOnlyGuard{})
	if err := r.executeStep(t.Context(), o, step(lifecycle.DestroyUnmirrored)); err != nil || conditions.written != 1 {
		t.Errorf("wrote %d conditions (%v), want one that reports the suspension", conditions.written, err)
	}
	heard(t, told, v1alpha1.ReasonSuspended)
}

// PlacedElsewhere names the registration of the member in which the claim is placed.
func TestPlacedElsewhereNamesTheMember(t *testing.T) {
	for what, s := range map[string]scene{
		"unbound": sceneOf(placedIn(elsewhereID)), "bound": sceneOf(leafBound, bound, placedIn(elsewhereID)),
	} {
		for name, want := range map[string]string{"cluster39": `member "cluster39"`, "": `cluster "id39", which is not registered`} {
			t.Run(fmt.Sprintf("%s, %q", what, name), func(t *testing.T) {
				r := s.reconciler()
				if host, ok := r.Host.(*store); ok && name != "" {
					registration := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
					registration.Status.ClusterID = elsewhereID
					host.add(registration)
				}
				if host, ok := r.Host.(*store); ok {
					host.add(s.class)
				}
				o, err := r.newClaimObserver().ObserveClaim(t.Context(), client.ObjectKeyFromObject(s.root))
				if err != nil {
					t.Fatal(err)
				}
				if report := planForClaim(o).Report; report == nil || !strings.Contains(report.Message, want) {
					t.Errorf("%+v does not contain %q", report, want)
				}
			})
		}
	}
}

// If the root is gone, an event on the host PV reports why the leaf claim is kept.
func TestReplacedVolumeIsReportedOnItsHostVolume(t *testing.T) {
	o := seen(leafBound, stampedVolume, retainedVolume, hostHolds, replaced, rootGone)
	r, _, _, told := proving(o)
	if err := r.executeStep(t.Context(), o, planForClaim(o)); err != nil {
		t.Error(err)
	}
	heard(t, told, v1alpha1.ReasonVolumeReplaced)
}

// While the next step belongs to another controller, root_pvc does not remove the claim's report.
func TestAbstainingWritesNothing(t *testing.T) {
	o := seen(leafBound, bound, pointsBack("another"))
	o.Root.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonVolumeLost}}
	r, _, _, told := proving(o)
	if err := r.executeStep(t.Context(), o, planForClaim(o)); err != nil {
		t.Error(err)
	}
	heard(t, told, "")
}

// The annotation that makes the member's PV controller process a leaf claim again contains the
// volume's UID.
func TestTouch(t *testing.T) {
	o := seen(leafBound, bound, pointsBack("leaf-uid"))
	r, _, _, _ := proving(o)
	patched := &patches{}
	r.MemberWriter = guarded.NewMemberWriter(patched, here.HostID, here.Registration, guarded.HostOnlyGuard{})
	if err := r.executeStep(t.Context(), o, planForClaim(o)); err != nil {
		t.Fatal(err)
	}
	if got := patched.last.GetAnnotations()[v1alpha1.AnnotationVolumeUID]; got != "pv-uid" {
		t.Errorf("the annotation is %q, want pv-uid", got)
	}
}

// patches accepts every patch, and keeps the last object.
type patches struct {
	client.Client
	last client.Object
}

func (p *patches) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	p.last = obj
	return nil
}

// A leaf claim whose root has no placement is suspicious, but is not reported if only the cache
// lacks the placement.
func TestDoubtIsLive(t *testing.T) {
	for name, placed := range map[string]string{"not placed": "", "placed in the meantime": here.ClusterID} {
		t.Run(name, func(t *testing.T) {
			o := seen(leafBound, placedIn(""), selected(elsewhereNode))
			if plan := planForClaim(o); plan.Phase != lifecycle.Unconfirmed {
				t.Fatalf("plan is %+v, want phase Unconfirmed", plan)
			}
			r, host, _, told := proving(o)
			host.claim = o.Root.DeepCopy()
			set(host.claim, v1alpha1.AnnotationPlacedIn, placed)
			if err := r.executeStep(t.Context(), o, planForClaim(o)); err != nil {
				t.Error(err)
			}
			heard(t, told, map[string]string{"": v1alpha1.ReasonAdoptionUnconfirmed}[placed])
		})
	}
}

// No message advises users to delete a volume that may be the claim's own.
func TestOnlyASurplusMayBeDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		change  []func(*scene)
		deletes bool
	}{
		"bound to a volume in another member":    {[]func(*scene){leafBound, boundTo("pv-9"), away}, true},
		"bound to a volume that is not observed": {[]func(*scene){leafBound, boundTo("pv-9")}, false},
		"not placed":                             {[]func(*scene){leafBound, placedIn(""), selected("")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			problem := planForClaim(seen(tc.change...)).Report
			if problem == nil {
				t.Fatal("nothing is reported")
			}
			if got := strings.Contains(problem.Message, "delete claim"); got != tc.deletes {
				t.Errorf("the message advises users to delete the volume: %t, want %t: %s", got, tc.deletes, problem.Message)
			}
		})
	}
}

func classOf(policy corev1.PersistentVolumeReclaimPolicy) *storagev1.StorageClass {
	return &storagev1.StorageClass{ReclaimPolicy: &policy}
}
